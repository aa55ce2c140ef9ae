"""README and docs: nothing that a user may write or read is missing, and the examples work."""

import ast
import datetime
import pkgutil
import re
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from hpc_train.base.errors import HpcTrainError
from hpc_train.base.yamlfile import Document
from hpc_train.diagnosis.signatures import read_own
from hpc_train.jobs.read_job import build_job, build_study, is_study
from hpc_train.logs.formats.formats import compiled, read_formats
from hpc_train.machine.check_site import check_site
from hpc_train.scripts.prepare import Request, prepare
from hpc_train.sites.load import load_site

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
DOCS = ROOT / "docs"
PAGES = [README, *sorted(DOCS.glob("*.md"))]
BLOCK = re.compile(r"^```(?P<kind>[^\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)|(?:src|href)=\"([^\"]+)\"")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
INLINE_JOB = {"command": ["true"]}


class Block(NamedTuple):
    """A fenced block of a page: its info string and its text."""

    page: str
    number: int
    kind: str
    text: str


def blocks(*kinds: str) -> list[Block]:
    """Return the fenced blocks of these kinds on all pages."""
    return [
        Block(page.name, number, match["kind"], match["text"])
        for page in PAGES
        for number, match in enumerate(BLOCK.finditer(page.read_text(encoding="utf-8")))
        if match["kind"] in kinds
    ]


def label(block: Block) -> str:
    return f"{block.page}-{block.number}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.name))
def test_relative_links_exist(page: Path) -> None:
    text = BLOCK.sub("", page.read_text(encoding="utf-8"))
    targets = [one or other for one, other in LINK.findall(text)]
    local = [target for target in targets if not re.match(r"[a-z]+:", target)]
    assert [target for target in local if not link_works(page, target)] == []


def link_works(page: Path, target: str) -> bool:
    name, _, anchor = target.partition("#")
    path = page.parent / name if name else page
    if not anchor:
        return path.exists()
    return path.is_file() and anchor in anchors(path.read_text(encoding="utf-8"))


def anchors(text: str) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in HEADING.findall(text))
    return {heading.replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("block", blocks("yaml"), ids=label)
def test_yaml_examples_decode(block: Block, tmp_path: Path) -> None:
    document = parsed(block)
    path = tmp_path / "example.yaml"
    kind = kind_of(document)
    if kind == "site":
        path = tmp_path / f"{document.data['name']}.yaml"
        path.write_text(block.text, encoding="utf-8")
        load_site(str(path))
    elif kind == "study":
        if isinstance(document.data["job"], str):
            document.data["job"] = INLINE_JOB
        build_study(document, (), path)
    elif kind == "signatures":
        path.write_text(block.text, encoding="utf-8")
        assert list(read_own(path))
    elif kind == "formats":
        path.write_text(block.text, encoding="utf-8")
        file = read_formats(path)
        assert [compiled(file, name) for name in file.value.formats]
    else:
        build_job(document.data, document.origins, (), path)


@pytest.mark.parametrize(
    "block", [one for one in blocks("yaml") if "scheduler:" in one.text], ids=label
)
def test_examples_of_profiles_pass_their_check(block: Block, tmp_path: Path) -> None:
    path = tmp_path / f"{parsed(block).data['name']}.yaml"
    path.write_text(block.text, encoding="utf-8")
    made = check_site(str(path), datetime.date(2026, 11, 21))
    assert [one.message for one in made.findings if one.severity == "error"] == []
    assert made.jobs > 0


def parsed(block: Block) -> Document:
    document = Document(label(block), HpcTrainError)
    document.load(block.text)
    return document


def kind_of(document: Document) -> str:
    if own := {"formats", "signatures"} & set(document.data):
        return own.pop()
    if "scheduler" in document.data:
        return "site"
    return "study" if is_study(document) else "job"


def mistakes() -> list[tuple[Block, Block]]:
    """Return each wrong example with the answer that follows it."""
    found = blocks("yaml wrong", "text")
    return [(wrong, answer) for wrong, answer in pairwise(found) if wrong.kind == "yaml wrong"]


@pytest.mark.parametrize(("wrong", "answer"), mistakes(), ids=lambda block: label(block))
def test_mistakes_are_answered_as_shown(
    wrong: Block, answer: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HPCTRAIN_SITE", "local")
    file = Path(wrong.text.splitlines()[0].removeprefix("# "))
    file.write_text(wrong.text, encoding="utf-8")
    is_site = "scheduler:" in wrong.text
    job = Path("given.yaml") if is_site else file
    if is_site:
        job.write_text("command: ['true']\n", encoding="utf-8")
    with pytest.raises(HpcTrainError) as caught:
        prepare(Request(path=job, site=str(file) if is_site else None))
    said = f"hpctrain: {caught.value.message} {caught.value.hint}"
    # Long answers are wrapped on the page.
    assert answer.text.split() == said.split()


@pytest.mark.parametrize("page", ["docs/architecture.md", "CONTRIBUTING.md"])
def test_the_code_that_a_page_names_exists(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    for name in sorted(set(re.findall(r"`((?:\w+\.)+\w+)`", text))):
        if (ROOT / "hpc_train" / name.split(".")[0]).is_dir() and not name.endswith(".py"):
            pkgutil.resolve_name(f"hpc_train.{name}")
    files = re.findall(r"`((?:hpc_train|tests|templates|docs)/[\w./-]+\w)`", text)
    assert [file for file in files if "NAME" not in file and not (ROOT / file).exists()] == []


def test_the_tree_of_the_architecture_names_each_module() -> None:
    named = set(re.findall(r"\w+", BLOCK.findall((DOCS / "architecture.md").read_text())[0][1]))
    modules = (ROOT / "hpc_train").rglob("[a-z]*.py")
    assert {one.stem for one in modules if one.parent.name not in ("cli", "formats")} <= named


def test_messages_use_the_words_that_contributors_agreed_on() -> None:
    rows = (ROOT / "CONTRIBUTING.md").read_text().partition("## Words")[2].split("\n## ")[0]
    words = [w for row in re.findall(r"^\| ([^|]+) \|", rows, re.M) for w in row.split(", ")][1:]
    avoided = re.compile(rf"\b(?:{'|'.join(map(re.escape, words))})(?!\w)", re.IGNORECASE)
    found = []
    for path in (ROOT / "hpc_train").rglob("*.py"):
        tree = ast.parse(path.read_text())
        statements = {id(one.value) for one in ast.walk(tree) if isinstance(one, ast.Expr)}
        found += [
            f"{path}:{one.lineno}: {one.value}"
            for one in ast.walk(tree)
            if isinstance(one, ast.Constant) and isinstance(one.value, str)
            if " " in one.value and id(one) not in statements and avoided.search(one.value)
        ]
    # What qsub says, in its own words.
    assert [one for one in found if "Illegal attribute" not in one] == []
    assert len(words) > 20 and avoided.search("thus")
