"""BLEU next to the loss of each validation: the loss falls long before, and after, translations become better."""

from collections.abc import Callable

from transformer_ref.data.parallel_text import Parallel
from transformer_ref.evaluation import bleu
from transformer_ref.training.run import Run, to_be_judged
from transformer_ref.training.trainer import Progress
from transformer_ref.translate import Translator

LINES = 200  # enough to see a trend, and translated in seconds


class ValidationBleu:
    """Called at each validation of a training run; translates some validation lines greedily and reports their BLEU.

    lines: the validation set, of which `count` lines are taken at equal distances; tokenize: see `bleu`.
    report: called with the sentence. Raises ValueError for a count below 1.
    """

    def __init__(self, run: Run, lines: Parallel, count: int, tokenize: str, report: Callable[[str], None]) -> None:
        if count < 1:
            raise ValueError(f"validate-bleu: expected at least 1 line, got {count}")
        count = min(count, len(lines.source))
        places = [place * len(lines.source) // count for place in range(count)]
        self._sources, self._references = ([side[place] for place in places] for side in lines)
        self._run, self._tokenize, self._report = run, tokenize, report
        self.scores: list[tuple[int, float]] = []  # step, BLEU

    def __call__(self, progress: Progress) -> None:
        """Do nothing after a single step."""

    def validated(self, progress: Progress, loss: float) -> None:
        """Translate with the current weights, and report."""
        run = self._run
        model = to_be_judged(run.training).eval()  # the next step sets training mode again
        translator = Translator(model, run.source_tokenizer, run.target_tokenizer)
        found = bleu(translator.translate(self._sources, beam_size=1), self._references, self._tokenize)
        self.scores.append((progress.step, found.score))
        self._report(f"validation BLEU {found.score:.2f} of {len(self._sources)} lines, greedy, {found.signature}")
