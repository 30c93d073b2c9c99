"""What the command line prints stays whole where lines are short."""

from splatop.cli.app import console, numbers_table, show


def test_no_number_of_a_table_is_cut_short(capsys, monkeypatch):
    monkeypatch.setattr(console, "_width", 30)
    table = numbers_table("Method", "rL2", "ms")
    row = ("a/long/folder/of/a/run (Physics alone)", "3.4e-04 ± 6e-05", "0.0551")
    table.add_row(*row)
    show(table)
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 2
    assert all(cell in said[1] for cell in row)
