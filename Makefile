# The everyday verbs; each is a script of the same name in scripts/. Pass arguments with ARGS="…".
VERBS := bootstrap demo check format test soak bench compile lock image kubernetes-trial
.PHONY: help quick $(VERBS)

help:
	@echo "make [$(VERBS) quick]"

$(VERBS):
	@scripts/$@ $(ARGS)

quick:
	@scripts/test -m "not slow" $(ARGS)
