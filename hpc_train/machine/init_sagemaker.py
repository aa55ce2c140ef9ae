"""An account of AWS -> draft of a site profile that loads and renders a job."""

from __future__ import annotations

import datetime

from hpc_train.machine.draft_sagemaker import draft_sagemaker
from hpc_train.machine.init_site import Drafted, InitOptions, check_draft, target_of, write_draft
from hpc_train.sagemaker.account_check import read_account


def init_sagemaker(options: InitOptions) -> Drafted:
    """Ask AWS, and write the draft atomically.

    Raises:
        HpcTrainError: no region or credentials, no answer, or a file that cannot be written.
    """
    given = options.name or (options.output.stem if options.output else None)
    if given is not None:
        # Errors in the options are reported before AWS is asked.
        target_of(options, given)
    account = read_account()
    name = given or f"aws-{account.region}"
    target = target_of(options, name)
    text = draft_sagemaker(name, datetime.date.today().isoformat(), account)
    check_draft(name, text, f"the answers of AWS for the account {account.account}")
    write_draft(target, text, options)
    return Drafted(path=target, name=name, text=text, unread=account.unread)
