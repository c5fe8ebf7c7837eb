"""The channels that alarm events go out by: one file and one line here for each."""

from __future__ import annotations

from ringfence.jobs.auditing.alarms.channels import mail, webhook
from ringfence.jobs.auditing.alarms.channels.base import Channel

__all__ = ["CHANNELS", "Channel"]

CHANNELS: tuple[Channel, ...] = (webhook.CHANNEL, mail.CHANNEL)
