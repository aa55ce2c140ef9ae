"""Environment variables in files and scripts: allowed names, and detection of secrets."""

import re
from typing import Annotated

from msgspec import Meta

Variable = Annotated[
    str,
    Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$(?!\n)", description="Name of an environment variable."),
]
# In a job's `secrets`: from the shell that submits.
ENV = "env"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

# What the script exports for the ranks; a plain script exports the rendezvous only.
RENDEZVOUS = ("MASTER_ADDR", "MASTER_PORT")
FROM_SCRIPT = (*RENDEZVOUS, "HPCTRAIN_RUN", "HPCTRAIN_LOG_DIR", "HPCTRAIN_FAILURE_FILE")
# Variables of the script and its wrappers that last while the ranks run, and read-only variables of
# bash: a value would be lost.
_OURS = frozenset(
    """
    bad_nodes child code cpus_on_node cpus_per_rank each_node edf head host_addresses host_names
    is_host job_folder lost_start mpi_exports mpi_hosts mpi_slots name nccl_trace node_address
    node_wrapper own_address own_interface plugin_check preflight rank_wrapper ranks_ended restarts
    run_nodes started vendor_names with_local_rank
    BASHOPTS BASH_VERSINFO EUID PPID SHELLOPTS UID
    RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE
    """.split()
).union(FROM_SCRIPT)

_NEEDED = {
    "PATH": "without it, the script finds no program",
    "HOME": "without it, ~ is not a folder, and programs do not find their settings and caches",
}


def is_reserved(name: str) -> bool:
    """Whether a job's script would not pass on a variable of this name unchanged."""
    return name in _OURS or name.startswith("hpctrain_")


def is_variable(name: str) -> bool:
    """Whether a shell can export a variable of this name."""
    return bool(_NAME.fullmatch(name))


def why_not_empty(name: str) -> str:
    """Return the reason why a variable must not be empty, or an empty text."""
    return _NEEDED.get(name, "")


# Whole words of a name, separated by `_`, at any position.
_ANYWHERE = re.compile(
    r"(?:^|_)(?:SECRETS?|[A-Z0-9]*PASSWORDS?|PASSWD|PASSPHRASE|CREDENTIALS?|[A-Z0-9]*APIKEYS?|JWT|COOKIES?|CONNECTION_STRING|WEBHOOK_URL"
    r"|(?:API|ACCESS|PRIVATE|SECRET|SSH|AUTH|ENCRYPTION|SIGNING|DEPLOY|SERVICE|STORAGE|ACCOUNT"
    r"|LICENSE)_KEYS?"
    r"|(?:ACCESS|API|AUTH|BEARER|REFRESH)_TOKEN)(?:_|$)"
)
# Only as the last word: TOKEN_DIM is a number.
_LAST = frozenset(("TOKEN", "TOKENS", "PASS", "PWD", "PAT", "AUTH"))
# As options of their own.
_ALONE = frozenset(("PASS", "PWD", "PAT", "AUTH", "BEARER"))
# A word before the last one that gives it another meaning: tokens of a text, passes over data,
# folders, switches.
_HARMLESS = frozenset(
    """
    MAX MIN NUM N PER PAD EOS BOS SEP CLS MASK UNK SPECIAL FIRST SECOND LAST NEXT PREV START STOP
    END IMAGE FORWARD BACKWARD SINGLE ONE TWO MULTI ORIG OLD INIT SAVED WORK JOB RUN HOST USE NO
    ENABLE DISABLE REQUIRE
    """.split()
)
# Names of the location of a secret.
_PLACES = frozenset(("FILE", "PATH", "DIR"))
# Form -> a text in every such secret, and its expression, which is compiled for texts with it.
_FORMS = {
    "hf_…": ("hf_", r"hf_[A-Za-z0-9]{20,}"),
    "ghp_…": ("gh", r"gh[opsur]_[A-Za-z0-9]{20,}"),
    "github_pat_…": ("github_pat_", r"github_pat_[A-Za-z0-9_]{20,}"),
    "glpat-…": ("glpat-", r"glpat-[A-Za-z0-9_-]{16,}"),
    "sk-…": ("sk-", r"sk-(?:[a-z0-9]{1,10}-){0,2}[A-Za-z0-9_]{20,}"),
    "AKIA…": ("IA", r"A[KS]IA[A-Z0-9]{16}"),
    "xoxb-…": ("xox", r"xox[abeprs]-[A-Za-z0-9-]{10,}"),
    "Bearer …": ("Bearer", r"Bearer\s+[A-Za-z0-9._~+/-]{16,}"),
    "login …": ("login", r"login\s+(?:--?[\w-]+\s+)?(?:[0-9a-f]{40}\b|(?=\w{0,80}\d)\w{24,})"),
    "AIza…": ("AIza", r"AIza[A-Za-z0-9_-]{30,}"),
    "npm_…": ("npm_", r"npm_[A-Za-z0-9]{30,}"),
    "pypi-…": ("pypi-", r"pypi-(?:AgE[A-Za-z0-9_-]{16,}|[A-Za-z0-9_-]{50,})"),
    "dapi…": ("dapi", r"dapi[0-9a-f]{32}"),
    "sk_live_…": ("k_", r"[rs]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    "dckr_pat_…": ("dckr_pat_", r"dckr_pat_[A-Za-z0-9_-]{20,}"),
    "ya29.…": ("ya29.", r"ya29\.[A-Za-z0-9_-]{20,}"),
    "a private key": ("PRIVATE KEY", r"-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----"),
    "eyJ….eyJ…": ("eyJ", r"eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{5,}"),
}
SECRET_FORMS = {
    **{form: (mark, rf"(?<![A-Za-z0-9_-]){text}") for form, (mark, text) in _FORMS.items()},
    # Not a placeholder for a password.
    "a URL with user:password@": (
        "://",
        r"(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]{0,40}://[^\s/:@]*:(?![<${*])[^\s/@]+@",
    ),
    "a URL with a signature": ("=", r"[?&](?:sig|X-Amz-Signature)=[A-Za-z0-9%+/]{16,}"),
}
# Also Hydra's `+group.name=value`.
_ASSIGNED = re.compile(
    r"(?:^|[\s;&?|(,{'\"])[+~]{0,2}(?P<name>[A-Za-z_][\w./@:-]*)="
    r"(?P<value>'[^']*'|\"[^\"]*\"|[^\s;&|),}]*)"
)
# JSON, YAML and Python, perhaps in the quotes of a shell.
_KEYED = re.compile(
    r"(?:^|[\s{,(=])\\?['\"]?(?P<name>[A-Za-z_][\w.-]*)\\?['\"]?\s*:\s*"
    r"(?P<value>\\?'[^'\\]*|\\?\"[^\"\\]*|[^\s,;}'\"{\[]+)"
)
_FLAG = re.compile(
    r"(?:^|\s)--?(?P<name>[A-Za-z][\w.-]*)(?:=|\s+)(?P<value>'[^']*'|\"[^\"]*\"|[^\s;&|)]+)"
)
# A key with dots, and its value as the next word: `--override wandb.api_key KEY`.
_NEXT = re.compile(r"(?:^|\s)(?P<name>[A-Za-z_]\w*(?:\.[\w-]+)+)\s+(?P<value>[^\s;&|)-][^\s;&|)]*)")
# From elsewhere: a variable, a command, a file.
_ELSEWHERE = re.compile(r"[$`<]|^[~/.]")
_KEY = re.compile(r"^(?=[^0-9]*[0-9])[A-Za-z0-9_+=-]{16,}")
# Counts, switches, places, patterns, marks in a text.
_PLAIN = re.compile(r"^[-+.\d]{0,5}$|^(?i:true|false|yes|no|on|off)$|^[~/.]|[<>*|]")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NUMBER = re.compile(r"[-+.\deE_]+")
_SHORTEST = 8
KEPT = "and scripts are kept and shared"


def looks_secret(name: str, value: object = None) -> bool:
    """Whether a variable's name shows that its value is a secret.

    For an ambiguous name, such as TRAIN_PASS, the value is also checked, if known.
    """
    name = _CAMEL.sub("_", name)
    words = name.upper().split("_")
    if words[-1] in _PLACES:
        return False
    if _ANYWHERE.search(name.upper()):
        return True
    if value is not None and words[-1] == "KEY":
        return bool(_KEY.fullmatch(str(value)))
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    may_be = last in _LAST if before else last.endswith("TOKEN")
    if not may_be or before in _HARMLESS:
        return False
    return value is None or _not_plain(last, str(value))


def _not_plain(last: str, text: str) -> bool:
    """Whether a text is not a count, switch, path or similar; passwords may be short."""
    if last in ("PASS", "PWD", "AUTH"):
        return not _PLAIN.search(text)
    return len(text) >= _SHORTEST and not (_PLAIN.search(text) or _NUMBER.fullmatch(text))


def secret_form(text: str) -> str:
    """Return the form that identifies a text as a secret, or an empty text."""
    found = (
        form
        for form, (mark, regex) in SECRET_FORMS.items()
        if mark in text and re.search(regex, text)
    )
    return next(found, "")


def secret_set(text: str) -> str:
    """Return the variable or option that a text sets to a secret, or an empty text."""
    for match in (
        found for form in (_ASSIGNED, _FLAG, _NEXT, _KEYED) for found in form.finditer(text)
    ):
        flag = match.re in (_FLAG, _NEXT)
        name, value = _last_part(match["name"]), match["value"].strip("'\"\\")
        alone = flag and name.upper() in _ALONE and any(map(str.isdigit, value))
        if value and not _ELSEWHERE.search(value) and (alone or looks_secret(name, value)):
            # An option may have no value, and the next word may be unrelated.
            if not flag or (_not_plain("TOKEN", value) and not value.startswith("-")):
                return match["name"]
    return ""


def _last_part(name: str) -> str:
    """Return `api_key` of `trainer.wandb.api-key`."""
    return re.split(r"[./@:]", name)[-1].replace("-", "_")


def secret_in(key: str, text: str) -> tuple[str, str] | None:
    """Return a message on a secret in a text, without repeating it, and a variable for it."""
    name = secret_set(text)
    if name:
        message = f"{key} sets {name}, which looks like a secret, {KEPT}"
        if is_variable(name):
            return message, name
        # An option, or a key of Hydra.
        known = "WANDB_API_KEY" if "wandb" in name.lower() else ""
        return message, known or _CAMEL.sub("_", _last_part(name)).upper()
    form = secret_form(text)
    return (f"{key} contains what looks like a secret ({form}), {KEPT}", "NAME") if form else None


def named_by_job(name: str) -> str:
    """Return what to write into a job instead."""
    return f"export {name} in the shell you submit from, and write `secrets: {{{name}: env}}`"


def named_by_users(name: str) -> str:
    """Return what to write instead of a secret in a profile, which all users read."""
    return (
        f"remove it from the profile, which all users read; a job names it: "
        f"`secrets: {{{name}: env}}`, or the path of a file that only its user may read"
    )
