"""Files made to keep whoever reads them: what is read of one comes to an end, and soon."""

import json
import tarfile

import pytest

from autograder.intake import salvage, unpack


def tar_header(name: str, size: int, kind: bytes = tarfile.REGTYPE) -> bytes:
    """A header of a tar; a size below zero as GNU tar writes large ones."""
    header = bytearray(tarfile.TarInfo(name).tobuf(tarfile.GNU_FORMAT))
    header[124:136] = b"%011o\0" % size if size >= 0 else b"\xff" + size.to_bytes(11, "big", signed=True)
    header[148:157] = b" " * 8 + kind
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header)


def test_a_tar_that_leads_back_to_where_it_was_comes_to_an_end(monkeypatch):
    read = []
    take = tarfile.TarInfo.frombuf.__func__

    def counted(kind, *arguments):
        read.append(1)
        if len(read) > 50_000:
            pytest.fail("it goes on and on")
        return take(kind, *arguments)

    monkeypatch.setattr(tarfile.TarInfo, "frombuf", classmethod(counted))
    back = tar_header("a.txt", 0) + tar_header("__MACOSX/a", -512) + bytes(2048)
    longer = b"13 size=-512\n"
    told = tar_header("pax", len(longer), tarfile.XHDTYPE) + longer.ljust(512, b"\0") + tar_header("__MACOSX/a", 0)
    for data in (back, tar_header("a.txt", 0) + told + bytes(2048)):
        assert len(list(unpack.members("a.tar", data))) <= 1


def test_long_headers_of_a_tar_are_not_searched_without_end():
    """Their search takes the square of their length: of a megabyte of digits a quarter of an hour."""
    size = 200 * 512
    long = tar_header("pax", size, tarfile.XHDTYPE) + b"1" * size + tar_header("a.txt", 0) + bytes(1024)
    assert list(unpack.members("a.tar", long)) == []
    many = (tar_header("pax", 1 << 14, tarfile.XHDTYPE) + b"x" * (1 << 14) + tar_header("a.txt", 0)) * 50
    assert len(list(unpack.members("a.tar", many + bytes(1024)))) < 20


def test_texts_in_a_file_are_together_read_again_as_often_as_one(monkeypatch):
    class Counted:
        tried = 0

        def raw_decode(self, *arguments):
            self.tried += 1
            return decoder.raw_decode(*arguments)

    decoder, texts = salvage.DECODER, 40
    broken = '{"cell_type":' + '{"a":[1,' * 100
    monkeypatch.setattr(salvage, "WORK", 20 * len(broken))
    monkeypatch.setattr(salvage, "DECODER", Counted())
    assert salvage.read(json.dumps([broken] * texts).encode())[0].pieces == ()
    assert salvage.DECODER.tried < 10 * texts
