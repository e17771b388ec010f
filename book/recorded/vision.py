"""Record what small models learn to see: vision.json, for chapter 14.

    python -m book.recorded.vision [--only compare | pixels | questions]

compare: a ViT and two convolutional networks on each generated task, over three seeds. pixels: a network that cannot
see far, with and without attention between its pixels, and gamma on its way from 0. questions: attention that a
question guides, trained on scenes of all kinds and on scenes where every hot dog has mustard, with the controls that
tell the two apart. Three minutes of one core in all.
"""

import argparse
import json
import platform
import re
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from transformer_ref.beyond import images as drawn
from transformer_ref.beyond import questions as asked
from transformer_ref.beyond.convolution import DeepCNN, LocalCNN
from transformer_ref.beyond.vision import ViT
from transformer_ref.recording import FOLDER

RECORD = FOLDER / "vision.json"
SEEDS = (1, 2, 3)
BATCH, TESTED = 64, 1000
PATCH = 6
FEW, MANY = 300, 3000  # training images
NEAR, FAR = (0, 4), (9, 13)  # first columns of a mark, left and right half

Make = Callable[[int, Generator], drawn.Images]
TASKS: dict[str, tuple[Make, Make, int, int]] = {  # what is trained on, what is judged on, training images, answers
    "shapes": (drawn.shapes, drawn.shapes, FEW, len(drawn.MARKS)),
    "shapes, more images": (drawn.shapes, drawn.shapes, MANY, len(drawn.MARKS)),
    "shapes, other half": (
        lambda count, g: drawn.shapes(count, g, NEAR),
        lambda count, g: drawn.shapes(count, g, FAR),
        FEW,
        len(drawn.MARKS),
    ),
    "counts": (drawn.counts, drawn.counts, FEW, drawn.MOST_DOTS),
    "relations": (drawn.relations, drawn.relations, FEW, 2),
}
MODELS: dict[str, tuple[Callable[[int], nn.Module], float]] = {  # and the rate that served it best in a first try
    "ViT": (lambda classes: ViT(drawn.SIDE, PATCH, 1, d_model=32, h=4, layers=2, d_ff=64, classes=classes), 3e-3),
    "local CNN": (lambda classes: LocalCNN(1, 16, classes), 1e-2),
    "deep CNN": (lambda classes: DeepCNN(1, 12, classes), 3e-3),
}
STEPS = 300
LOOKING_STEPS = {"shapes": 200, "relations": 400}
LOOKING_RATE, GAMMA_FASTER = 5e-3, 10
QUESTION_STEPS, QUESTION_RATE, SCENES = 600, 3e-3, 4000
ALWAYS = 1.0  # the share of hot dogs with mustard


def fit(
    model: nn.Module,
    loss_of: Callable[[Tensor], Tensor],
    count: int,
    steps: int,
    rate: float,
    generator: Generator,
    watch: Callable[[int], None] = lambda step: None,
) -> None:
    """Train by AdamW with a rate that rises and falls; `gamma`, where there is one, learns faster.

    loss_of: indices of training items -> their loss; count: number of items.
    """
    named = list(model.named_parameters())
    slow = [parameter for name, parameter in named if not name.endswith("gamma")]
    doors = [parameter for name, parameter in named if name.endswith("gamma")]
    groups = [{"params": slow, "lr": rate}, *({"params": [door], "lr": GAMMA_FASTER * rate} for door in doors)]
    optimizer = torch.optim.AdamW(groups)
    highest = [group["lr"] for group in groups]
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, highest, total_steps=steps)
    for step in range(steps):
        watch(step)
        loss = loss_of(torch.randint(count, (BATCH,), generator=generator))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    watch(steps)


def learn(model: nn.Module, data: drawn.Images, *settings: Any) -> None:
    """Train a model to classify images; the settings are those of `fit` from `steps` on."""
    fit(model, lambda i: F.cross_entropy(model(data.pixels[i]), data.answers[i]), len(data.answers), *settings)


@torch.inference_mode()
def share_right(model: nn.Module, data: drawn.Images) -> float:
    """Return the accuracy on images."""
    return round((model(data.pixels).argmax(-1) == data.answers).float().mean().item(), 3)


def size(model: nn.Module) -> int:
    """Return the number of a model's parameters."""
    return sum(parameter.numel() for parameter in model.parameters())


def compare() -> dict[str, Any]:
    """Train every model on every task."""
    record: dict[str, Any] = {"steps": STEPS, "tested": TESTED, "seeds": SEEDS, "tasks": {}}
    for task, (teaching, judging, count, classes) in TASKS.items():
        record["tasks"][task] = {"images": count, "models": {}}
        for name, (make, rate) in MODELS.items():
            right = []
            for seed in SEEDS:
                g = Generator().manual_seed(seed)
                torch.manual_seed(seed)
                model, data = make(classes), teaching(count, g)
                learn(model, data, STEPS, rate, g)
                right.append(share_right(model, judging(TESTED, g)))
            record["tasks"][task]["models"][name] = {"right": right, "weights": size(model), "rate": rate}
            print(task, name, right, flush=True)
    return record


def pixels() -> dict[str, Any]:
    """Train the local network on relations, with attention between pixels and without."""
    record: dict[str, Any] = {"steps": LOOKING_STEPS, "seeds": SEEDS, "kinds": {}}
    for kind, attention in {"without": False, "with": True}.items():
        rows = []
        for seed in SEEDS:
            g = Generator().manual_seed(seed)
            torch.manual_seed(seed)
            model = LocalCNN(1, 16, len(drawn.MARKS), attention=attention)
            seen = drawn.shapes(2000, g)  # first it learns to tell marks apart
            learn(model, seen, LOOKING_STEPS["shapes"], LOOKING_RATE, g)
            model.head = nn.Linear(model.head.in_features, 2)
            row: dict[str, Any] = {"weights": size(model)}
            if attention:
                nn.init.zeros_(model.attention.gamma)
                row["gamma"] = []
            learn(
                model,
                drawn.relations(4000, g),
                *(LOOKING_STEPS["relations"], LOOKING_RATE, g),
                lambda step, m=model, r=row: note(m, r, step),
            )
            row["right"] = share_right(model, drawn.relations(TESTED, g))
            rows.append(row)
            print("pixels", kind, seed, row, flush=True)
            if attention:
                row["opened"] = opened_pixels(model)
        record["kinds"][kind] = rows
    return record


def note(model: nn.Module, row: dict[str, Any], step: int) -> None:
    """Record gamma, every 20 steps."""
    if "gamma" in row and step % 20 == 0:
        row["gamma"].append(round(model.attention.gamma.item(), 4))


@torch.inference_mode()
def opened_pixels(model: LocalCNN) -> list[dict[str, Any]]:
    """Return images of both classes, the model's predictions, and the attention weights."""
    data = drawn.relations(40, Generator().manual_seed(14))
    shown = []
    for answer in (1, 0):
        image = data.pixels[(data.answers == answer).nonzero()[0]]
        weights = model.attention.weights(model.local(image))[0]  # (pixel, pixel)
        said = model(image).softmax(-1)[0]
        shown.append(
            {"same": answer, "said": rounded(said), "image": rounded(image[0, 0], 2), "weights": rounded(weights)}
        )
    return shown


def questions() -> dict[str, Any]:
    """Train the question's attention on all kinds of scenes, and on scenes in which hot dogs have mustard."""
    record: dict[str, Any] = {"steps": QUESTION_STEPS, "scenes": SCENES, "seeds": SEEDS, "kinds": {}}
    for kind, prior in {"all toppings": None, "always mustard": ALWAYS}.items():
        rows = []
        for seed in SEEDS:
            g = Generator().manual_seed(seed)
            torch.manual_seed(seed)
            told = asked.scenes(SCENES, g, prior)
            seen, wanted = asked.draw(told, g), asked.ask(told, g)
            model = asked.QuestionAttention()

            def loss_of(i: Tensor, model=model, seen=seen, wanted=wanted) -> Tensor:
                return F.cross_entropy(model(seen[i], wanted.ids[i]).logits, wanted.answers[i])

            fit(model, loss_of, SCENES, QUESTION_STEPS, QUESTION_RATE, g)
            row = {"as trained": familiar(model, asked.scenes(TESTED, g, prior), g), **controls(model, g)}
            row["shown"] = shown_scenes(model)
            rows.append(row)
            print("questions", kind, seed, {key: value for key, value in row.items() if key != "shown"}, flush=True)
        record["kinds"][kind] = rows
    record["scenes shown"] = [
        {"places": told.places[0].tolist(), "toppings": told.toppings[0].tolist(), "cloths": told.cloths[0].tolist()}
        for told in SHOWN.values()
    ]
    return record


@torch.inference_mode()
def familiar(model: asked.QuestionAttention, told: asked.Scenes, generator: Generator) -> float:
    """Return the accuracy on scenes like the training ones."""
    wanted = asked.ask(told, generator)
    said = model(asked.draw(told, generator), wanted.ids).logits.argmax(-1)
    return round((said == wanted.answers).float().mean().item(), 3)


@torch.inference_mode()
def controls(model: asked.QuestionAttention, generator: Generator) -> dict[str, Any]:
    """Return for each food the accuracy, its share of the map, and the effect of the controls.

    swapped: the food gets the next topping; the share of answers that change. even: every position gets the same
    weight.
    """
    told = asked.scenes(TESTED, generator)  # toppings of all kinds
    seen = asked.draw(told, generator)
    found: dict[str, Any] = {}
    for about in ("on", "under"):
        for food, name in enumerate(asked.FOODS):
            ids = asked.question([food] * TESTED, about)
            logits, weights = model(seen, ids)
            said = logits.argmax(-1)
            right = told.toppings[:, food] if about == "on" else len(asked.TOPPINGS) + told.cloths[:, food]
            even = model(seen, ids, torch.full_like(weights, 1 / weights.shape[1])).logits.argmax(-1)
            row = {
                "right": mean(said == right),
                "map": round(weights.gather(1, told.places[:, food : food + 1]).mean().item(), 3),
                "even": mean(even != said),
            }
            if about == "on":
                other = asked.swapped(told, food, (told.toppings[:, food] + 1) % len(asked.TOPPINGS))
                before, after = (model(asked.draw(each), ids).logits.argmax(-1) for each in (told, other))
                row["swapped"] = mean(before != after)
            found[f"{about} the {name}"] = row
    return found


def _scene() -> dict[str, asked.Scenes]:
    """Return the scene that the page shows: a hot dog with mustard, and the same with ketchup."""
    first = asked.Scenes(torch.tensor([[4, 0, 2, 6]]), torch.tensor([[0, 1, 2, 3]]), torch.tensor([[0, 1, 2, 1]]))
    return {"mustard": first, "ketchup": asked.swapped(first, asked.HOT_DOG, 1)}


SHOWN = _scene()


@torch.inference_mode()
def shown_scenes(model: asked.QuestionAttention) -> list[list[dict[str, Any]]]:
    """Return for each shown scene and each question the map and the probabilities of the answers."""
    return [
        [
            {"map": rounded(weights[0]), "shares": rounded(logits.softmax(-1)[0])}
            for about in ("on", "under")
            for food in range(len(asked.FOODS))
            for logits, weights in [model(asked.draw(told), asked.question([food], about))]
        ]
        for told in SHOWN.values()
    ]


def mean(true: Tensor) -> float:
    """Return the share of True."""
    return round(true.float().mean().item(), 3)


def rounded(numbers: Tensor, digits: int = 3) -> Any:
    """Return numbers as nested lists."""
    if numbers.dim() == 0:
        return round(numbers.item(), digits)
    return [rounded(row, digits) for row in numbers]


PARTS = {"compare": compare, "pixels": pixels, "questions": questions}


def main(arguments: Sequence[str] | None = None) -> None:
    """Train the requested parts, and write the record; the other parts stay unchanged."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=PARTS)
    only = parser.parse_args(arguments).only
    torch.set_num_threads(1)
    for part in [only] if only else PARTS:
        began = time.process_time()
        made = PARTS[part]()
        made["cpu_seconds"] = round(time.process_time() - began)
        made["versions"] = {"python": platform.python_version(), "torch": torch.__version__}
        record = json.loads(RECORD.read_text("utf-8")) if RECORD.exists() else {}
        record["command"] = "python -m book.recorded.vision"
        record[part] = made
        text = re.sub(r"(\}\]?, )", r"\1\n", json.dumps(record, ensure_ascii=False))
        RECORD.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
