"""A gateway in Python: it asks before it sends, sends at most once, and reports what became of it.

Needs python3-grpcio, and the stubs that the build makes (build/dev/python on PYTHONPATH). docs/gateway-authors.md tells why
each step stands where it stands.
"""

import os
import random
import time

import grpc

from tally.v1 import calls_pb2, calls_pb2_grpc, common_pb2


class NotSent(Exception):
    """Raised by `send` only if not one byte was written."""


class ToolError(Exception):
    """Raised by `send` for an answer that is an error and explains itself. args[0] is the answer's bytes."""


class Refused(Exception):
    """There is no grant to send. `happened` may be yes: an earlier call did it, or nobody knows yet."""

    def __init__(self, disposition, refusal):
        super().__init__(f"{common_pb2.Disposition.Name(disposition)} {refusal.code}: {refusal.message}")
        self.disposition = disposition
        self.refusal = refusal


class Gateway:
    def __init__(self, channel, credential, journal):
        self._calls = calls_pb2_grpc.CallsStub(channel)
        self._metadata = (("authorization", "Bearer " + credential),)
        self._journal = journal  # a folder; one file an attempt

    def call(self, permit_token, key, tool, arguments, send, timeout=30.0):
        """Has `send()` called at most once, and returns the tool's answer: its own, or the stored one."""
        attempt = os.urandom(16)  # for this attempt only, never used again
        request = calls_pb2.AuthorizeRequest(
            permit_token=permit_token, key=key, attempt_id=attempt, tool=tool, arguments=arguments,
            # Send window, the tool's timeout, and a margin.
            lease_ms=int((10 + timeout + 5) * 1000))
        self._note(attempt, "asking", key)
        started = time.clock_gettime(time.CLOCK_BOOTTIME)  # goes on while the machine sleeps
        grant = self._ask(self._calls.Authorize, request)
        if grant.disposition == common_pb2.REPLAY and grant.has_result:
            return grant.result
        # Whatever is not known here is no grant either.
        if grant.disposition != common_pb2.DISPATCH or grant.attempt_id != attempt:
            raise Refused(grant.disposition, grant.refusal)

        self._note(attempt, "sending", key)
        if time.clock_gettime(time.CLOCK_BOOTTIME) - started >= grant.send_within_ms / 1000:
            self._commit(grant, calls_pb2.OUTCOME_NOT_SENT)
            raise NotSent("the grant came too late")
        sent_at_us = time.time_ns() // 1000
        try:
            answer = send()
        except NotSent:
            self._commit(grant, calls_pb2.OUTCOME_NOT_SENT)
            raise
        except ToolError as error:
            self._commit(grant, calls_pb2.OUTCOME_TOOL_ERROR, result=error.args[0], sent_at_us=sent_at_us)
            raise
        except BaseException:  # a timeout, a cut connection, Ctrl-C: it may have happened
            self._commit(grant, calls_pb2.OUTCOME_UNCERTAIN, sent_at_us=sent_at_us)
            raise
        self._commit(grant, calls_pb2.OUTCOME_SUCCEEDED, result=answer, sent_at_us=sent_at_us)
        return answer

    def _commit(self, grant, outcome, **more):
        request = calls_pb2.CommitRequest(call_id=grant.call_id, attempt_id=grant.attempt_id, outcome=outcome, **more)
        try:
            self._ask(self._calls.Commit, request)
            self._note(grant.attempt_id, "committed", calls_pb2.CommitOutcome.Name(outcome))
        except grpc.RpcError:
            # The journal has it; until somebody reports it, the lease ends and the call is parked. What the tool said
            # does not change by that.
            self._note(grant.attempt_id, "unreported", calls_pb2.CommitOutcome.Name(outcome))

    def _ask(self, method, request, tries=5):
        """Again with the same bytes, and only where that is safe: contended and unavailable."""
        for turn in range(tries):
            try:
                return method(request, metadata=self._metadata, timeout=5)
            except grpc.RpcError as error:
                safe = error.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.ABORTED,
                                        grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.DEADLINE_EXCEEDED)
                if not safe or turn + 1 == tries:
                    raise
                time.sleep(random.uniform(0, 0.05 * 2 ** turn))
        raise AssertionError("unreachable")

    def _note(self, attempt, word, about):
        """On disk before the next step: after a crash, `sending` means UNCERTAIN, and anything before it NOT_SENT."""
        with open(os.path.join(self._journal, attempt.hex()), "a", encoding="utf-8") as file:
            file.write(f"{word} {about}\n")
            file.flush()
            os.fsync(file.fileno())
