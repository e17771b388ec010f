"""Where the tensors live, chosen on request and never at import."""

import torch


def choose_device(request: str) -> torch.device:
    """Return the device asked for.

    request: "auto" (the first CUDA device if there is one, else the CPU), "cpu", "cuda" or "cuda:1".
    Raises ValueError for another word, and for a CUDA device that this machine does not have.
    """
    if request == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    kind, _, index = request.partition(":")
    if request != "cpu" and not (kind == "cuda" and (index.isdecimal() or request == "cuda")):
        raise ValueError(f'device: expected "auto", "cpu", "cuda" or "cuda:<number>", got "{request}"')
    present = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if kind == "cuda" and int(index or 0) >= present:
        raise ValueError(f'device: expected one of {present} CUDA devices, got "{request}"')
    return torch.device(request)
