"""A short campaign has a fault of each kind. ``python -m tests.faults.campaign`` has as many as one likes."""

from __future__ import annotations

import sys

import pytest

from tests.faults import campaign
from tests.faults.strikes import STRIKES

pytestmark = pytest.mark.xdist_group("cluster")


def test_views_and_sinks_are_right_after_a_fault_of_each_kind(
    soaking: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if not soaking:
        pytest.skip("a campaign takes minutes: pytest --soak 2")
    monkeypatch.setattr(sys, "argv", ["campaign", "--kills", str(len(STRIKES)), "--seed", "5"])
    campaign.main()
    assert "0 lost, 0 doubled" in capsys.readouterr().out
