"""What a cell may hold besides Python: magics, shell lines and help, found by IPython's own reader."""

from IPython.core.inputtransformer2 import TransformerManager

CALL = "get_ipython()"


def as_python(cell: str) -> str:
    """The cell as IPython runs it: magics, shell lines and help become calls. Empty if IPython cannot parse it."""
    try:
        return TransformerManager().transform_cell(cell)
    except (SyntaxError, ValueError, RuntimeError, RecursionError):  # it would not run either
        return ""


def without_magics(cell: str) -> str:
    """The cell as plain Python that runs anywhere, without magics, shell lines and help.

    All other lines stay unchanged, such as a comment that ends in "?" or a line that begins with the operator %.
    """
    if cell.lstrip().startswith("%%"):
        return ""
    read = as_python(cell)
    if CALL not in read:
        return cell
    written = set(cell.splitlines())
    lines = []
    for line in read.splitlines():
        if CALL in line and line not in written:
            begin = line[: len(line) - len(line.lstrip())]
            line = f"{begin}pass" if begin else ""  # as the only line of a block it has to be a statement
        lines.append(line)
    return "\n".join(lines) + "\n"
