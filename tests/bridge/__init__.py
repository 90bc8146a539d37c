"""Tests of the worker bridge against small real HTTP servers that stand for the horde and for a backend."""
