"""``python -m dpone_provider.cli``: the same as ``dpone``."""

from __future__ import annotations

from dpone_provider.cli import main

if __name__ == "__main__":
    main()
