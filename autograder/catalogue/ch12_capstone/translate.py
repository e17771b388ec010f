"""12.3: a list of English lines becomes a list of Italian ones, and how good they are is measured."""

import torch

from autograder.catalogue.ch12_capstone import symptoms
from autograder.catalogue.ch12_capstone.sentences import ITALIAN, LINES, unseen
from autograder.catalogue.ch12_capstone.shared import sections
from autograder.catalogue.ch12_capstone.symptoms import most, quoted
from autograder.catalogue.exercise import Case, Exercise, Scale
from autograder.catalogue.known_answers import answer, correct, mistake
from autograder.catalogue.probes import hidden, visible
from transformer_ref.recording import recording

TRANSLATE, SYMPTOMS = sections("translate symptoms")


def translate(lines: list[str]) -> list[str]:
    """What the grammar says of lines that it has drawn."""
    return [ITALIAN.get(line, "") for line in lines]


def measured(wanted: list[str], got: list[str]) -> float:
    """BLEU as in `evaluation.bleu`; single words have too few n-grams for it, so a line by itself is right or counts
    its words."""
    if len(wanted) == 1:
        return 100.0 if wanted == got else 50 * float(symptoms.words(wanted[0]) == symptoms.words(got[0]))
    from sacrebleu import BLEU  # takes a while to import, and nothing else of the catalogue needs it

    read = [text[: symptoms.READ] for text in got]
    # force: it says nothing on stderr of spaces before marks
    return BLEU(force=True).corpus_score(read, [wanted]).score


SCALE = Scale(measured, **recording("capstone")["scale"], unit="BLEU")  # see book/recorded/capstone.py


def drawn(g: torch.Generator, lines: int) -> Case:
    return Case((unseen(g, lines),))


def with_an_empty_one(g: torch.Generator, lines: int) -> Case:
    """And all again: each separately, and together for the second time."""
    found = unseen(g, lines)
    return Case(([*found[:5], "", *found[5:]], True))


def short_and_long(g: torch.Generator) -> Case:
    """The six shortest and the three longest of many lines, so that the short ones are mostly padding."""
    lines = sorted(unseen(g, 60), key=lambda line: len(line.split()))
    return Case(([*lines[:6], *lines[-3:]],))


def asked(g: torch.Generator) -> Case:
    """Many lines, an empty one and one for the second time, after a call with other lines."""
    lines = unseen(g, LINES)
    return Case(([*lines[:40], "", *lines[40:], lines[3]],), before=(unseen(g, 5),))


RIGHT = answer("""
    from autograder.catalogue.ch12_capstone.sentences import ITALIAN

    def translate(lines):
        found = []
        for line in lines:
            words = ITALIAN[line].split()
            text = " ".join(words)
            found.append(text)
        return found
""")
TEXT, LINE = 'text = " ".join(words)', "words = ITALIAN[line].split()"


def says(change: str) -> str:
    """The right answer with something else made of the words."""
    return RIGHT.but(TEXT, change)


EXERCISE = Exercise(
    id="translate", number="12.3", difficulty=3, minutes=45, visible_points=0, hidden_points=20,
    reference=translate, section=TRANSLATE, seconds=60.0, trained=True, harness="company",
    omits={"a batch of one": "a visible probe takes a single line", "a length of one": "sentences have several words",
           "precision": "there are texts only"},
    probes=(
        visible("twenty lines that training never showed, and an empty one", with_an_empty_one, 20, scale=SCALE),
        visible("short lines beside long ones", short_and_long, scale=SCALE),
        visible("one line alone", drawn, 1, scale=SCALE),
        hidden(f"{LINES} lines that training never showed", asked, scale=SCALE,
               announced_by="combinations of words that training never showed"),
    ),
    mistakes=(
        mistake("nothing for the empty line", RIGHT.but("for line in lines:", "for line in filter(None, lines):"),
                SYMPTOMS,
            """Fewer translations came back than there are lines: the empty ones were passed over, and all that follows
            moved up. An empty line has a translation too, an empty one.""", shows=symptoms.fewer),
        mistake("empty lines", says('text = ""'), SYMPTOMS,
            """Nothing came back: the model ends every sentence at once. Is the first input <bos>, and was <eos>
            predicted from the *last* position? Or did it see in training the tokens that it should predict: is the
            causal mask there?""", shows=most(symptoms.empty)),
        mistake("special tokens in the text", says('text = "<bos> " + " ".join(words) + " <eos>"'), SYMPTOMS,
            """There are special tokens in your text, or signs of the tokenizer's own. Return what decode makes of the
            ids before the first <eos>.""", shows=most(symptoms.special), quotes=quoted),
        mistake("small letters", says('text = " ".join(words).lower()'), SYMPTOMS,
            "Everything is in small letters. The score looks at capitals, as a reader does.",
            shows=most(symptoms.small), quotes=quoted),
        mistake("the source copied", says("text = line"), SYMPTOMS,
            """You returned the source, or most of its words. Do you return the tokens that the model chose, or those
            that it read? If the model is your own: were sources and targets exchanged in training, and in the
            cross-attention, do queries come from the decoder, keys and values from the encoder?""",
            shows=most(symptoms.copied), quotes=quoted),
        mistake("always the same sentence", says('text = "La donna vede la casa."'), SYMPTOMS,
            """One sentence came back for nearly all lines. Is the model called with each line, or with the same one
            every time? If the model is your own: does the cross-attention read the encoder's output, and is its mask
            the right way round? The loss falls without that too, since the model learns which words are common.""",
            shows=symptoms.all_the_same, quotes=quoted),
        mistake("in another order",
                RIGHT.but("for line in lines:", "for line in sorted(lines, key=lambda line: (len(line), line)):"),
                SYMPTOMS,
            """These are good translations, of other lines: sentences were sorted, perhaps by length, and not put back.
            The n-th translation belongs to the n-th line.""", shows=symptoms.other_order, quotes=quoted),
        mistake("the same words again and again", says('text = " ".join([*words[:2], *words[1:2] * 12])'), SYMPTOMS,
            """A word, or a few in turn, came back again and again. Are the scores of the *last* position read, and not
            those of the first, and is each new token fed in with those before it? If the model is your own: are
            positions added to the target, with a cache too? Or was it trained to output what it reads, because the
            target was not shifted?""", shows=most(symptoms.repeats),
            quotes=quoted),
        mistake("backwards", says('text = " ".join(words[::-1])'), SYMPTOMS,
            "The right words came back in reverse order. In which order are the tokens collected, or joined?",
            shows=most(symptoms.backwards), quotes=quoted),
        mistake("the last word lost", says('text = " ".join(words[:-1])'), SYMPTOMS,
            """The last token of each line is missing. What is cut off before decode: <eos>, or the token before it?""",
            shows=most(symptoms.last_lost), quotes=quoted),
        mistake("the first word lost", says('text = " ".join(words[1:])'), SYMPTOMS,
            "The first word of each line is missing: <bos> was dropped, and then one more.",
            shows=most(symptoms.first_lost), quotes=quoted),
        mistake("all end where one ends", RIGHT.but(LINE, """
                  shortest = min((len(ITALIAN[each].split()) for each in lines if each), default=0)
                  words = ITALIAN[line].split()[:shortest]"""), SYMPTOMS,
            """Among other lines your translations stop early; one at a time they go on. Does the loop end when *one*
            line of the batch has ended? It has to go on until *every* line has. Or is each line cut where a different
            one ends?""", shows=symptoms.cut_in_a_batch, quotes=symptoms.quoted_alone),
        mistake("the end comes too early", says('text = " ".join(words[: max(len(words) // 2, 1)])'), SYMPTOMS,
            """Your lines begin well and stop early. Is there a limit on the length that is too small, does the loop end
            when *one* line of the batch has ended, or did <eos> count too much in the loss?""",
            shows=most(symptoms.ends_early), quotes=quoted),
        mistake("words lost on the way", says('text = " ".join([*words[:1], *words[2:]])'), SYMPTOMS,
            """Your words are right and in their order, but some are missing in between. The model went on from a token
            that did not come back: was it never appended, or was it one that decode drops?""",
            shows=most(symptoms.words_lost), quotes=quoted),
        mistake("every word twice", says('text = " ".join(word for word in words for _ in range(2))'), SYMPTOMS,
            """Every word came back twice: each token was appended two times, or the position that was read is not the
            last one.""",
            shows=most(symptoms.doubled), quotes=quoted),
        mistake("other spaces", says('text = "".join(words)'), SYMPTOMS,
            """The letters are right and the spaces are not: punctuation is separated from its words, or words run
            together. Take the decode of the tokenizer that the model was trained with.""", shows=most(symptoms.spaces),
            quotes=quoted),
        mistake("goes on after the end", says('text = " ".join([*words, *words])'), SYMPTOMS,
            """Your lines are right, and then go on. Either what comes after <eos> is not cut off, or the model has
            never learned <eos>, because the labels end before it or it is masked like a pad.""",
            shows=most(symptoms.runs_on),
            quotes=quoted),
        mistake("what was said comes again", says('text = " ".join([*words[:-2], *words[:3], *words[-2:]])'), SYMPTOMS,
            """Your lines begin well, and then repeat what they contain already. Is each new token fed in with all of
            those before it? If the model is your own: are positions added to the target, and with a cache, is the
            newest token's position the number of those before it?""",
            shows=most(symptoms.comes_again, 0.4), quotes=quoted),
        mistake("the words in any order", says("""
                  import random
                  text = " ".join(random.Random(len(words)).sample(words, len(words)))"""), SYMPTOMS,
            """The right words came back, in a different order. Does your code change the order of the tokens after they
            were generated? If not, and the model is your own: without positions a sentence is a bag of words. Are they
            added on both sides, once, before the first layer?""", shows=most(symptoms.mixed, 0.4, wrong_ones=True),
            quotes=quoted),
        mistake("words that have nothing to do with the line", says("""
                  text = " ".join(["Zitto", "zitto", *map(str, range(len(line) // 6))])"""), SYMPTOMS,
            """Your lines have hardly a word in common with the correct ones. Has the model been trained at all (does
            the cell above end with a loss below 1?), is it the trained one that translates, and in evaluation mode,
            with the tokenizer it was trained with? If the loss fell as it should, it learned from what it has to
            predict: look at the causal mask, at the shift, at how heads are split and put together, and at the axis of
            the norm (chapter 08).""",
            shows=most(symptoms.unrelated), quotes=quoted),
        mistake("not twice the same", RIGHT.but("for line in lines:", """
                  translate.calls = getattr(translate, "calls", 0) + 1
                  for line in lines:""").but(TEXT, 'text = " ".join(words[: 3 if (len(line) + translate.calls) % 3 == '
                                                   '0 else 99])'), SYMPTOMS,
            """The same lines became different ones from one call to the next. Something is drawn while you translate: a
            dropout that is still on, where evaluation mode would turn it off, or a choice by chance.""",
            shows=symptoms.by_chance,
            quotes=symptoms.quoted_again),
        mistake("good alone, bad in a batch", RIGHT.but(LINE, """
                  words = ITALIAN[line].split()
                  if len(line) < 0.8 * max(map(len, lines)):
                      words = ["che", *words[::2][::-1]]"""), SYMPTOMS,
            """The other lines of a batch change a line's translation. The longest line of a batch decides how much
            padding the others get: is it hidden from the encoder *and* from the cross-attention, in training too, and
            is it at the end? Does each norm look at the features of *one* word, and does your loop go on until *every*
            line has ended?""", shows=symptoms.otherwise_alone, quotes=symptoms.quoted_alone),
    ),
    correct=(
        correct("what the grammar says", RIGHT),
        correct("in batches", """
            from autograder.catalogue.ch12_capstone.sentences import ITALIAN

            def translate(sentences):
                done = {}
                for start in range(0, len(sentences), 16):
                    batch = sentences[start:start + 16]
                    done.update((s, ITALIAN[s]) for s in sorted(batch, key=len))
                return [done[s] for s in sentences]
        """),
        correct("a word wrong now and then", """
            from autograder.catalogue.ch12_capstone.sentences import ITALIAN

            def translate(lines):
                out = [ITALIAN[line] for line in lines]
                return [t.replace("Il ", "Lo ", 1) if n == 50 and len(out) > 100 else t for n, t in enumerate(out)]
        """),
        correct("a tuple", """
            from autograder.catalogue.ch12_capstone.sentences import ITALIAN

            def translate(lines):
                return tuple(map(ITALIAN.__getitem__, lines))
        """),
    ),
    hints=(
        "read five of your translations next to their sources: do they end, do they repeat, do they say what the "
        "source says?",
        "ids of the lines with <eos>, filled up: (batch, source). The target begins as (batch, 1) of <bos> and grows "
        "by a column a step; logits are (batch, target, vocabulary), and the last position of them decides.",
        "encode each line and add <eos>; pad; until every row has an <eos> or the limit is reached: the likeliest next "
        "token of the last position, appended; drop <bos>, and decode what comes before <eos>. In evaluation mode, "
        "without gradients. (With the notebook's default model, leaving out evaluation mode changes nothing, since it "
        "has no dropout, and leaving out the <eos> of the source changes little. Other models need both.)",
    ),
)  # fmt: skip
