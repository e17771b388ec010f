"""Makes cells of a CSV file harmless: a spreadsheet computes what begins like a formula, with =, +, - or @."""

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # what a spreadsheet computes
NOTHING = ("-", "–")


def safe(text: str) -> str:
    """The text, safe for a spreadsheet: a formula gets an apostrophe before it; numbers stay, and the lone hyphen that
    Moodle uses for nothing."""
    if not text.startswith(FORMULA) or text in NOTHING:
        return text
    try:
        float(text)
    except ValueError:
        return f"'{text}"
    return text
