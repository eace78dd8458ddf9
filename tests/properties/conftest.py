"""The command as tests call it."""

import io
import os
import sys
from types import SimpleNamespace

import pytest

import simdup.cli
from tests.properties.command import Ran, Run


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Call the command in this process, as wide as a terminal of 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("FORCE_COLOR", raising=False)

    def call(*arguments: str | os.PathLike[str], stdin: bytes = b"") -> Ran:
        monkeypatch.setattr(sys, "argv", ["simdup", *(os.fspath(argument) for argument in arguments)])
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(stdin)))
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            simdup.cli.main()
        out, err = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return Ran(ended.value.code, out, err)

    return call
