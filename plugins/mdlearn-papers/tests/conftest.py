"""Ctrl-C reaches the tests that send it."""

from __future__ import annotations

import signal

# A shell starts jobs in the background with Ctrl-C ignored, and so do all their children.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
