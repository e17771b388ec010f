"""A SentencePiece model as its library writes it: a message of Protocol Buffers, field by field."""

import struct
from collections.abc import Sequence

UNKNOWN = 2  # a kind of piece


def field(number: int, value: int | float | bytes) -> bytes:
    """Return a whole number, a number with a fraction, or bytes, as the field of a message."""
    form = 0 if isinstance(value, int) else 5 if isinstance(value, float) else 2
    head = whole_number(number * 8 + form)
    if form == 0:
        return head + whole_number(value)
    return head + (struct.pack("<f", value) if form == 5 else whole_number(len(value)) + value)


def whole_number(value: int) -> bytes:
    """Return seven bits a byte, the lowest first; the eighth says that more follow."""
    return bytes([value]) if value < 128 else bytes([value % 128 + 128]) + whole_number(value // 128)


def sentence_piece_model(
    pieces: Sequence[tuple[str, float]], kind: int = 1, trainer: bytes = b"", normalizer: bytes = b""
) -> bytes:
    """Return the file of these pieces and their scores; kind: 1 for a unigram model, 2 for byte-pair encoding."""
    messages = [
        field(1, piece.encode()) + field(2, score) + (field(3, UNKNOWN) if piece == "<unk>" else b"")
        for piece, score in pieces
    ]
    whole = b"".join(field(1, message) for message in messages)
    return whole + field(2, field(3, kind) + trainer) + field(3, normalizer or field(1, b"identity"))
