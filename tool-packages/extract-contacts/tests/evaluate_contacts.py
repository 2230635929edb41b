"""Precision and recall on labelled public data; run it to see the table and every miss.

Each function documents its criterion. The data is read from `shared/data/contacts` next to the repository and
is not part of it.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from jackfield_tool_extract_contacts.extraction import extract
from jackfield_tool_extract_contacts.phones import LENIENCIES
from phonenumbers import PhoneNumberMatcher

SENTENCE = "Please write to {} before Friday."
PHONE_GROUPS = ["POSSIBLE_ONLY_CASES", "VALID_CASES", "STRICT_GROUPING_CASES", "EXACT_GROUPING_CASES"]


class Score(NamedTuple):
    """Counts of one task, with its errors."""

    task: str
    true_positives: int
    false_positives: list[str]
    false_negatives: list[str]
    negatives: int

    @property
    def precision(self) -> float:
        found = self.true_positives + len(self.false_positives)
        return self.true_positives / found if found else 1.0

    @property
    def recall(self) -> float:
        wanted = self.true_positives + len(self.false_negatives)
        return self.true_positives / wanted if wanted else 1.0

    @property
    def f1(self) -> float:
        return 2 * self.precision * self.recall / (self.precision + self.recall)


def data_folder() -> Path | None:
    """Return the folder of labelled data, if it exists next to the repository."""
    for parent in Path(__file__).resolve().parents:
        folder = parent / "shared" / "data" / "contacts"
        if folder.is_dir():
            return folder
    return None


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_text("utf-8").splitlines():
        yield json.loads(line)


def _entities(text: str, *kinds: str, region: str | None = None, leniency: str = "valid") -> list[Any]:
    return [entity for entity in extract(text, region, leniency).entities if entity.kind in kinds]


def email_labels(folder: Path) -> dict[str, bool]:
    """Return each input once; the two inputs with contradictory labels are left out."""
    labels: dict[str, set[bool]] = {}
    for row in _rows(folder / "email_syntax.jsonl"):
        labels.setdefault(row["input"], set()).add(row["valid"])
    return {text: verdicts.pop() for text, verdicts in labels.items() if len(verdicts) == 1}


def _address(text: str) -> str:
    """Return the address in an input that may also contain a display name."""
    angles = re.fullmatch(r".*<(.+)>", text, re.DOTALL)
    return angles[1] if angles else text


def score_emails(folder: Path, template: str = "{}") -> Score:
    """Count an input, put into the template, as found if the tool reports exactly its address.

    If the tool takes a *part* of an input labelled invalid, `fragments` counts it instead: a label on the
    whole string does not say that no part of it is an address.
    """
    hits, wrong, missed, negatives = 0, [], [], 0
    for text, valid in email_labels(folder).items():
        found = _address(text) in {entity.text for entity in _entities(template.format(text), "emails")}
        negatives += not valid
        if found and valid:
            hits += 1
        elif found:
            wrong.append(text)
        elif valid:
            missed.append(text)
    task = "e-mails, alone" if template == "{}" else "e-mails, in a sentence"
    return Score(task, hits, wrong, missed, negatives)


def fragments(folder: Path) -> list[tuple[str, list[str]]]:
    """Return inputs labelled invalid, ignoring surrounding white space, of which a part is reported."""
    found = []
    for text, valid in email_labels(folder).items():
        parts = [entity.text for entity in _entities(text, "emails")]
        if not valid and parts and text.strip() not in parts and _address(text) not in parts:
            found.append((text, parts))
    return found


def link_cases(folder: Path) -> Iterator[tuple[str, str | None]]:
    """Return texts with their first link, or without one, as in the fixtures of linkify-it."""
    lines = [line.rstrip("\n") for line in (folder / "linkify_links.txt").read_text("utf-8").split("\n")]
    number = 0
    while number < len(lines):
        text = lines[number]
        number += 1
        if text.strip() and not text.startswith("%"):
            expected = lines[number].strip() if number < len(lines) else ""
            number += bool(expected)
            yield text, expected or text.strip()
    for line in (folder / "linkify_not_links.txt").read_text("utf-8").splitlines():
        if line.strip() and not line.startswith("%"):
            yield line, None


def score_links(folder: Path, kind: str) -> Score:
    """Compare the first entity of the tool with the first one of the fixture, ignoring `mailto:`.

    A fixture with `@` and no `//` is an address, any other one a link; a text without links counts for both.
    """
    hits, wrong, missed, negatives = 0, [], [], 0
    for text, expected in link_cases(folder):
        is_email = expected is not None and "@" in expected and "//" not in expected
        if expected is not None and is_email != (kind == "emails"):
            continue
        entities = _entities(text, kind)
        first = entities[0].text if entities else None
        if expected is None:
            negatives += 1
        if (
            expected is not None
            and first is not None
            and first == re.sub("^mailto:", "", expected, flags=re.IGNORECASE)
        ):
            hits += 1
            continue
        if first is not None:
            wrong.append(f"{text}  ->  {first}")
        if expected is not None:
            missed.append(text)
    return Score(f"linkify-it, {kind}", hits, wrong, missed, negatives)


def score_phones(folder: Path, leniency: str, *, library_alone: bool = False) -> Score:
    """Compare like PhoneNumberMatcherTest: a text matches whole up to its group's leniency, not beyond it."""
    level = LENIENCIES[leniency]
    hits, wrong, missed, negatives = 0, [], [], 0
    for row in _rows(folder / "phone_matcher_cases.jsonl"):
        text, region, group = row["text"], row["region"], row["group"]
        if library_alone:
            found = [match.raw_string for match in PhoneNumberMatcher(text, region, level)]
        else:
            found = [entity.text for entity in _entities(text, "phones", region=region, leniency=leniency)]
        expected = group in PHONE_GROUPS[level:]
        negatives += not expected
        if expected and found == [text]:
            hits += 1
            continue
        if found:
            wrong.append(f"{region} {text}  ->  {found}")
        if expected:
            missed.append(f"{region} {text}")
    return Score(
        f"phones, {leniency}" + (", libphonenumber alone" if library_alone else ""),
        hits,
        wrong,
        missed,
        negatives,
    )


def scores(folder: Path) -> list[Score]:
    """Return the scores of all tasks."""
    return [
        score_emails(folder),
        score_emails(folder, SENTENCE),
        score_links(folder, "emails"),
        score_links(folder, "urls"),
        *(score_phones(folder, leniency) for leniency in LENIENCIES),
        *(score_phones(folder, leniency, library_alone=True) for leniency in LENIENCIES),
    ]


def main() -> None:
    folder = data_folder()
    if folder is None:
        sys.exit("There is no folder shared/data/contacts beside the repository.")
    judged = scores(folder)
    print(f"{'task':<38} {'cases':>5} {'TP':>4} {'FP':>4} {'FN':>4} {'precision':>9} {'recall':>7} {'F1':>6}")
    for score in judged:
        wrong, missed = len(score.false_positives), len(score.false_negatives)
        cases = score.true_positives + missed + score.negatives
        counts = f"{cases:>5} {score.true_positives:>4} {wrong:>4} {missed:>4}"
        print(f"{score.task:<38} {counts} {score.precision:>9.3f} {score.recall:>7.3f} {score.f1:>6.3f}")
    for score in judged:
        for what, cases_gone_wrong in (("false", score.false_positives), ("missed", score.false_negatives)):
            for case in cases_gone_wrong:
                print(f"{score.task}: {what}: {case[:100]!r}")
    for text, parts in fragments(folder):
        print(f"fragment: {text[:80]!r} -> {parts}")


if __name__ == "__main__":
    main()
