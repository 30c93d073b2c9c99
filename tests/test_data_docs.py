"""The Python of docs/data.md runs, and its commands exist."""

import re
from pathlib import Path

import pytest

from splatop.cli import main

PAGE = (Path(__file__).parent.parent / "docs" / "data.md").read_text()


@pytest.mark.parametrize("code", re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL))
def test_python(code, monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "data.md", "exec"), {})
    assert "(20, 6, 2, 64, 64)" in capsys.readouterr().out


def test_options_of_the_page_are_those_of_the_commands(monkeypatch, capsys):
    known = ""
    for command in ("benchmarks", "generate", "inspect", "convert", "identify"):
        monkeypatch.setattr("sys.argv", ["splatop", command, "--help"])
        with pytest.raises(SystemExit):
            main()
        known += capsys.readouterr().out
    for option in set(re.findall(r"--[a-z]+", PAGE)):
        assert option in known, option
