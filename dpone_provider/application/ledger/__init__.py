"""The ledger's transactions, one script each: read rows under locks, let the domain decide, write what it returned.

A script returns a closed sum of outcomes. A failure among them rolls its transaction back. Every script is idempotent:
run again after a lost answer, it finds its own work done and says so.
"""
