"""Alarms: rules over the audit store, their states, and the channels that notify people.

A rule finds its condition true, false, or without data. It fires once true for `pending_minutes`.
Every change of state is an event in SQL first, and delivered by webhook and mail afterwards; what
could not be delivered is tried again at the next audit.
"""
