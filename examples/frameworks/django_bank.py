"""The bank in Django, in one file: `BANK_DATA=bank-data python -m examples.frameworks.django_bank runserver`.

With BANK_URL, a gateway's URL, the same views are in front of a cluster, in any number of processes.
"""

import json
import os
import sys

import django
from django.conf import settings
from django.core.handlers.wsgi import WSGIHandler
from django.core.management import execute_from_command_line
from django.http import HttpRequest, JsonResponse
from django.urls import path

import styx
from examples.bank import app

if not settings.configured:
    settings.configure(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["localhost", "127.0.0.1"], SECRET_KEY="an example's")
    django.setup()

URL = os.environ.get("BANK_URL")
bank = styx.connect_sync(URL) if URL else styx.embedded_sync(app, os.environ.get("BANK_DATA"))


def transfer(request: HttpRequest) -> JsonResponse:
    if request.method != "POST" or request.content_type != "application/json":  # a stranger's page cannot send it
        return JsonResponse({"error": "POST a JSON object"}, status=415)
    order, key = json.loads(request.body), request.headers.get("Idempotency-Key")
    try:
        # The serving process opens the client at its first request: runserver's other process only watches files.
        left = bank.open().call(
            "account", order["payer"], "transfer", order["payee"], order["amount"], idempotency_key=key
        )
    except styx.TransactionAborted as aborted:
        return JsonResponse({"error": aborted.message}, status=409)
    except styx.NotSent as error:
        return JsonResponse({"error": str(error)}, status=503, headers={"Retry-After": "1"})
    except (styx.OutcomeUnknown, TimeoutError) as error:
        return JsonResponse({"error": str(error)}, status=504)  # it may have happened: no Retry-After
    return JsonResponse({"left": left})


def account(request: HttpRequest, name: str) -> JsonResponse:
    state = bank.open().entity("account", name)
    return JsonResponse({"error": f"no account {name}"}, status=404) if state is None else JsonResponse(state)


urlpatterns = [path("transfers", transfer), path("accounts/<str:name>", account)]
application = WSGIHandler()

if __name__ == "__main__":
    execute_from_command_line(sys.argv)
