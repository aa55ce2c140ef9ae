"""What `hpctrain site` does: list, show, check and detect profiles."""
