"""Lines of words that no language has, drawn by a probe's generator: nobody has a table of them."""

import torch


def drawn_lines(g: torch.Generator, count: int = 8) -> list[str]:
    """Lines of a few words, some of them again and again."""
    words = [word_of(g) for _ in range(9)]
    return [" ".join(words[place] for place in torch.randint(9, (4 + n % 3,),
        generator=g).tolist()) for n in range(count)]


def word_of(g: torch.Generator, alphabet: str = "abcdeghilmnoprstuv\u00e0\u00e8", length: int = 5) -> str:
    """A word of at least `length` letters."""
    size = length + int(torch.randint(4, (), generator=g))
    return "".join(alphabet[place] for place in torch.randint(len(alphabet), (size,), generator=g).tolist())
