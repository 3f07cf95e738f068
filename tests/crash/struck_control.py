"""What an operator's process is asked to do with the authority, on the lab's engines, while it is struck."""

from __future__ import annotations

import dataclasses

from dpone_provider.assembly.control import Control
from dpone_provider.assembly.settings import ALL_ENVIRONMENTS, Settings
from dpone_provider.domain.identity import ServiceId
from tests.acceptance import processes
from tests.crash.struck import Strike, struck_runtime

processes.preload(__name__)
BECAUSE = "a crash test"


def control(settings: Settings, strike: Strike) -> Control:
    """Return the authority's control of a process, every port watched."""
    everywhere = dataclasses.replace(settings, environment=ALL_ENVIRONMENTS)
    return Control(runtime=struck_runtime(everywhere, strike))


def readmit(settings: Settings, strike: Strike) -> bool:
    """Be ``dpone control readmit``; tell whether there was anything to do."""
    _, done = control(settings, strike).readmit(BECAUSE, take_over=False)
    return done.readmission is not None


def forget(settings: Settings, strike: Strike) -> int:
    """Be ``dpone control forget``; return how many services were buried."""
    return len(control(settings, strike).forget(BECAUSE).buried)


def bury(settings: Settings, strike: Strike, service_id: ServiceId) -> int:
    """Be ``dpone control bury``; return how many attempts were put in doubt."""
    return len(control(settings, strike).bury(service_id, BECAUSE).attempts)
