"""The DAGs of the deployment that this environment's pointer names. Copy this file into Airflow's DAGs folder.

Airflow's processes find the cache by DPONE_CACHE_ROOT and DPONE_ENVIRONMENT, or by the options of the same names in
section [dpone] of airflow.cfg; tasks need the authority's reference as well (authority_connection_ref). After
`dpone airflow cache-sync` the new DAGs come with the file's next parse ([dag_processor] min_file_process_interval).
Where the cache cannot be read, the reason and the fix stand among Airflow's import errors.

`dpone_provider.airflow.bundle.DponeDagBundle` shows the same DAGs without this file, and pins each run to the
deployment that it began with.
"""

from __future__ import annotations

from dpone_provider.airflow.configuration import cache_place
from dpone_provider.airflow.loader import load_dags

globals().update(load_dags(cache_place()))
