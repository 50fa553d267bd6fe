"""`scripts/kubernetes-trial` with a pretended cluster: what it refuses, and what it leaves behind when steps fail."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Final

import pytest

from styx.testing.patience import PATIENCE_SECONDS

ROOT: Final = Path(__file__).parents[2]
SCRIPT: Final = ROOT / "scripts/kubernetes-trial"
SECONDS_MAX: Final = PATIENCE_SECONDS

NOTES: Final = 'echo "${0##*/} $*" >>"$CALLS"\n'
CLUSTER: Final = """
    case "$*" in
    "get --raw /readyz") exit ${NO_CLUSTER:-0} ;;
    "get namespace "*) exit ${NO_NAMESPACE:-1} ;;
    esac
"""


class Pretended:
    """kubectl and helm that note each call; `KUBECTL` and `HELM` are what else they do, as shell."""

    def __init__(self, folder: Path) -> None:
        self._calls = folder / "calls"
        self._bin = folder / "bin"
        self._bin.mkdir()
        self.tool("kubectl", CLUSTER)
        self.tool("helm", "exit 0")

    def tool(self, name: str, does: str) -> None:
        path = self._bin / name
        path.write_text(f"#!/bin/sh\n{NOTES}{does}\n")
        path.chmod(0o755)

    def trial(self, *words: str, **environment: str) -> tuple[int, str]:
        done = subprocess.run(
            [SCRIPT, *words],
            env={**os.environ, "PATH": f"{self._bin}:{os.environ['PATH']}", "CALLS": str(self._calls), **environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS_MAX,
        )
        return done.returncode, done.stdout + done.stderr

    @property
    def calls(self) -> list[str]:
        return self._calls.read_text().splitlines() if self._calls.exists() else []


@pytest.fixture
def cluster(tmp_path: Path) -> Pretended:
    return Pretended(tmp_path)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--fast"], "unknown option --fast"),
        (["--image"], "--image needs a value"),
        (["--image", "registry:5000/styx"], "registry:5000/styx has no tag"),
    ],
)
def test_a_wrong_option_changes_nothing(cluster: Pretended, words: list[str], why: str) -> None:
    status, said = cluster.trial(*words)
    assert status == 2
    assert why in said
    assert cluster.calls == []


def test_without_a_cluster_it_says_so(cluster: Pretended) -> None:
    status, said = cluster.trial(NO_CLUSTER="1")
    assert status == 2
    assert "no cluster answers" in said


def test_a_namespace_of_somebody_else_is_left_alone(cluster: Pretended) -> None:
    status, said = cluster.trial("--namespace", "shop", NO_NAMESPACE="0")
    assert status == 2
    assert "the namespace shop is there already" in said
    assert not any("delete" in call or "uninstall" in call for call in cluster.calls)


def test_what_cannot_be_installed_fails_the_trial_and_is_taken_away(cluster: Pretended) -> None:
    cluster.tool("helm", "[ $1 != install ] || { echo 'no such image' >&2; exit 1; }")
    status, said = cluster.trial("--namespace", "trial", "--no-benchmark", "--", "--set", "a=b")
    assert status == 1
    assert "no such image" in said
    assert "FAILED: install helm/stack with 2 workers" in said
    assert said.splitlines()[-1].endswith("verdict: FAILED, 1 of the steps")
    (install,) = (call for call in cluster.calls if call.startswith("helm install"))
    assert install.endswith("--set a=b")
    # Neither tested nor put under load.
    assert not any("audit" in call or call.startswith("helm test") for call in cluster.calls)
    assert any(call.startswith("kubectl delete namespace trial") for call in cluster.calls)


def test_what_is_kept_is_said(cluster: Pretended) -> None:
    cluster.tool("helm", "[ $1 != install ]")
    _, said = cluster.trial("--namespace", "trial", "--keep")
    assert "kept: helm --namespace trial status styx" in said
    assert not any("delete namespace" in call or "uninstall" in call for call in cluster.calls)
