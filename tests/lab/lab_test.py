"""What the lab concludes from what it saw, with stories written by hand: a lab that cannot see a duplicate proves nothing."""
import json
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from measure import measure, stories
from scenario import broken
from table import beside


def ask(caller="anna", key="k", t=0, amount=1):
    return {"event": "ask", "caller": caller, "key": key, "customer": "anna", "amount": amount, "t": t}


def told(what, caller="anna", key="k", t=1, amount=1):
    return {"event": "told", "what": what, "caller": caller, "key": key, "customer": "anna", "amount": amount, "t": t}


def seen(effects=(), log=(), wire=(), meant=None, permitted=None):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        effects = [{"customer": customer, "amount": amount} for customer, amount in effects]
        for name, rows in (("effects", effects), ("wire", wire), ("agents", log)):
            (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return measure(folder, meant or {}, permitted)


class Effects(unittest.TestCase):
    def test_the_second_effect_of_an_act_is_a_duplicate(self):
        self.assertEqual(seen([("anna", 1), ("anna", 1), ("anna", 2)])["duplicates"], 1)

    def test_what_was_meant_twice_is_none(self):
        self.assertEqual(seen([("anna", 1)] * 3, meant={("anna", 1): 2})["duplicates"], 1)

    def test_beyond_is_what_the_operator_would_not_have_let_happen(self):
        self.assertEqual(seen([("anna", 1), ("ben", 9)], permitted=[("anna", 1)])["beyond"], 1)
        self.assertEqual(seen([("anna", 1), ("ben", 9), ("cleo", 1)], permitted=2)["beyond"], 1)

    def test_dispatches_are_the_wires_partial_ones_too(self):
        self.assertEqual(seen(wire=[{"customer": "anna"}, {"partial": True}])["dispatches"], 2)


class Callers(unittest.TestCase):
    def of(self, *log, effects=()):
        found = seen(effects, log)
        return next(name for name in ("confirmed", "uncertain", "no_information", "misinformed") if found[name])

    def test_success_is_confirmed_only_by_the_providers_file(self):
        self.assertEqual(self.of(ask(), told("done"), effects=[("anna", 1)]), "confirmed")
        self.assertEqual(self.of(ask(), told("done")), "misinformed")

    def test_an_error_is_confirmed_where_nothing_was_done(self):
        self.assertEqual(self.of(ask(), told("error")), "confirmed")
        self.assertEqual(self.of(ask(), told("error"), effects=[("anna", 1)]), "misinformed")

    def test_silence_is_no_information_however_it_comes(self):
        for what in ("timeout", "broken: ConnectionResetError", "http 502"):
            self.assertEqual(self.of(ask(), told(what), effects=[("anna", 1)]), "no_information")
        self.assertEqual(self.of(ask()), "no_information", "killed before it was answered")

    def test_a_refusal_is_no_news_about_an_earlier_request_under_another_key(self):
        self.assertEqual(self.of(ask(), told("timeout"), ask(key="k2"), told("denied/X", key="k2")), "no_information")

    def test_a_decision_about_a_key_is_one_about_all_that_was_asked_under_it(self):
        self.assertEqual(self.of(ask(), told("timeout"), ask(), told("denied/X")), "confirmed")
        self.assertEqual(self.of(ask(), told("timeout"), ask(), told("error")), "no_information", "an error decides nothing")

    def test_uncertain_is_what_was_said_to_be(self):
        self.assertEqual(self.of(ask(), told("delivery_uncertain/NO_ANSWER"), effects=[("anna", 1)]), "uncertain")
        self.assertEqual(self.of(ask(), told("timeout"), ask(), told("delivery_uncertain/STILL_PENDING")), "uncertain")

    def test_a_success_ends_it(self):
        self.assertEqual(self.of(ask(), told("timeout"), ask(), told("replayed"), effects=[("anna", 1)]), "confirmed")

    def test_known_after_counts_from_the_first_request(self):
        log = [ask(t=10), told("timeout", t=15), ask(t=16), told("done", t=17.5)]
        self.assertEqual(seen([("anna", 1)], log)["known_s"], 7.5)

    def test_requests_and_keys_are_those_that_were_made(self):
        self.assertEqual(seen(log=[ask(), told("timeout"), ask(key="k2"), told("timeout", key="k2")])["requests"], 2)
        self.assertEqual(stories([ask(), told("timeout"), ask(key="k2")])["anna"].key, "k2")


class Judgement(unittest.TestCase):
    def test_what_is_not_as_expected_is_named(self):
        self.assertEqual(broken({"effects": 1, "holds": [0, 2]}, {"effects": 1, "holds": 2}), [])
        self.assertEqual(len(broken({"effects": 1, "holds": [0, 2]}, {"effects": 2, "holds": 3})), 2)
        self.assertEqual(len(broken({"kills": 3, "holds": [0, 1]}, {})), 2, "a figure that is missing is not as expected")

    def test_a_tool_with_keys_is_given_its_due(self):
        plain = {"duplicates": 0, "beyond": 0, "no_information": 0, "misinformed": 0, "confirmed": 1}
        self.assertEqual(beside(plain, plain), "as well")
        self.assertEqual(beside(plain, {**plain, "confirmed": 0}), "better")
        for figure in ("duplicates", "beyond", "no_information", "misinformed"):
            self.assertEqual(beside({**plain, figure: 1}, plain), "worse")
        self.assertEqual(beside(plain, {**plain, "noticed": 5}), "worse")


unittest.main()
