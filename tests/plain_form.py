"""Marks tests that replace parts of the engine, which compiled code does not look at: plain form only."""

from __future__ import annotations

import pytest

from styx.native.form import FORM

plain_form = pytest.mark.skipif(bool(FORM.extensions), reason="compiled code does not look at what a test replaces")
