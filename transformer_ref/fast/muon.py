"""Muon, all matrices of one shape at once. `training/muon.py` says what is computed.

The matrices of a small model are small, and a processor would spend a third of a training step on starting their
products one after another. Where several processes take the same step, each makes its share of the products.
"""

import itertools
from functools import partial
from operator import attrgetter

from torch import Tensor

from transformer_ref.training.muon import Muon, apply_update, orthogonal


class BatchedMuon(Muon):
    """`Muon` with fewer and larger matrix products."""

    def move(self, group: dict, matrices: list[Tensor]) -> None:
        """Update those matrices of a group that have a gradient."""
        begun = []
        for _, of_shape in itertools.groupby(sorted(matrices, key=attrgetter("shape")), key=attrgetter("shape")):
            alike = list(of_shape)
            nearest = partial(orthogonal, **self.settings(group, alike[0].device))
            begun.append((alike, self._processes.shared(nearest, [self.direction(each, group) for each in alike])))
        for alike, updates in begun:
            for matrix, update in zip(alike, updates(), strict=True):
                apply_update(matrix, update, group)
