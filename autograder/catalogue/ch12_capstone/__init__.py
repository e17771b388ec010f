"""Chapter 12, the capstone: a translator, its data, its tokenizer, its last weights, what it looks at, and a report."""

from autograder.catalogue.chapters import chapter
from autograder.catalogue.exercise import ByHand

ASSIGNMENT = chapter(
    __name__,
    "audit tokenizer translate average-checkpoints export-attention",
    visible_modules=(
        "transformer_ref.capstone",
        "transformer_ref.data.batching",
        "transformer_ref.decoding.beam_search",
        "transformer_ref.decoding.greedy",
        "transformer_ref.evaluation",
        "transformer_ref.model.transformer",
        "transformer_ref.training.trainer",
        "transformer_ref.visualization.curves",
    ),
    by_hand=(ByHand("capstone-report", "12.6", 20, minutes=120),),
    trains=("capstone-training", "capstone-curves", "capstone-ambiguous", "capstone-average", "capstone-claims"),
    cell_seconds=180,  # a training run takes 80 s of one processor, a learner's own Transformer perhaps twice as long
    notebook_seconds=235,  # under four minutes, whatever a notebook does
)
