#!/usr/bin/env python3
"""One refund through the gateway of tally_gateway.py.

usage: refund.py KEY CUSTOMER AMOUNT
Set: TALLY_SERVER, TALLY_CREDENTIAL (a file), TALLY_PERMIT_TOKEN, PROVIDER (its URL), JOURNAL (a folder).
Exits 0 when it was done, now or before; 10 when it was refused; 20 when nobody knows.
"""

import json
import os
import sys
import urllib.error
import urllib.request

import grpc

from tally_gateway import Gateway, NotSent, Refused, ToolError


def main():
    key, customer, amount = sys.argv[1:]
    with open(os.environ["TALLY_CREDENTIAL"], encoding="utf-8") as file:
        credential = file.read().strip()
    gateway = Gateway(grpc.insecure_channel(os.environ["TALLY_SERVER"]), credential, os.environ["JOURNAL"])
    arguments = json.dumps({"customer": customer, "amount": int(amount)}).encode()

    def send():
        request = urllib.request.Request(os.environ["PROVIDER"] + "/refunds", data=arguments,
                                         headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=10) as response:
                return response.read()
        except urllib.error.HTTPError as error:
            if error.code in (400, 422):
                raise ToolError(error.read()) from error
            raise  # anything else does not say whether it was done
        except urllib.error.URLError as error:
            if isinstance(error.reason, ConnectionRefusedError):
                raise NotSent(str(error)) from error
            raise

    try:
        print(gateway.call(os.environ["TALLY_PERMIT_TOKEN"], key, "payments__refund", arguments, send).decode())
    except Refused as refused:
        print(refused)
        return 10
    except (NotSent, ToolError, grpc.RpcError) as error:
        print(f"not done: {error}")
        return 1
    except Exception as error:
        print(f"sent, and no answer came: {error}")
        return 20
    return 0


if __name__ == "__main__":
    sys.exit(main())
