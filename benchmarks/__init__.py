"""Measurements, as ratios within one run where two things are compared. Never part of the tests."""
