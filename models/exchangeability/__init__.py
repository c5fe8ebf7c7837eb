"""Tests of exchangeability: martingales, permutation tests, arrival tests, the advisor."""
