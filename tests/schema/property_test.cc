// Random schemas and instances: laws that hold between schemas, whatever they say.
#include <gtest/gtest.h>

#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "lib/json/canonical.h"
#include "lib/json/parse.h"
#include "lib/json/pointer.h"
#include "lib/schema/schema.h"

namespace tally::schema {
namespace {

using json::Array;
using json::Object;
using json::Value;

// Small worlds, so that schemas and instances meet.
class Generator {
 public:
  explicit Generator(uint32_t seed) : random_(seed) {}

  Value Instance(int depth) {
    switch (Below(depth > 0 ? 8 : 6)) {
      case 0:
        return Value();
      case 1:
        return Value(Below(2) == 0);
      case 2:
      case 3:
        return Value(
            *json::Number::Parse(Pick({"0", "1", "2", "7", "-1", "0.5", "2.50", "1e2", "1e-9", "9007199254740993"})));
      case 4:
      case 5:
        return Value(Pick({"", "a", "ab", "\u00E9", "\U0001F602x", "aaaa", "7"}));
      case 6: {
        Array array;
        for (int i = Below(4); i > 0; --i) array.push_back(Instance(depth - 1));
        return Value(array);
      }
      default: {
        Object object;
        for (int i = Below(4); i > 0; --i) object.Set(Name(), Instance(depth - 1));
        return Value(object);
      }
    }
  }

  // Mostly of the right form, so that most are compiled.
  Value Schema(int depth) {
    if (depth == 0 || Below(8) == 0) return Below(3) == 0 ? Value(Below(2) == 0) : Value(Typed());
    Object schema;
    for (int i = 1 + Below(3); i > 0; --i) AddKeyword(depth - 1, &schema);
    return Value(schema);
  }

  int Below(int limit) { return static_cast<int>(random_() % static_cast<uint32_t>(limit)); }

 private:
  std::string Pick(std::initializer_list<const char*> texts) {
    return *std::next(texts.begin(), Below(static_cast<int>(texts.size())));
  }
  std::string Name() { return Pick({"a", "b", "ab", "x/y", "m~n", "\u00E9"}); }
  Value Count() { return Value(int64_t{Below(4)}); }

  Object Typed() {
    Object schema;
    schema.Set("type", Value(Pick({"null", "boolean", "number", "integer", "string", "array", "object"})));
    return schema;
  }

  Value Schemas(int depth) {
    Array schemas;
    for (int i = 1 + Below(3); i > 0; --i) schemas.push_back(Schema(depth));
    return Value(schemas);
  }

  Value NamedSchemas(int depth) {
    Object schemas;
    for (int i = 1 + Below(3); i > 0; --i) schemas.Set(Name(), Schema(depth));
    return Value(schemas);
  }

  Value Names() {
    Array names;
    if (Below(2) == 0) names.push_back(Value("a"));
    if (Below(2) == 0) names.push_back(Value("x/y"));
    return Value(names);
  }

  void AddKeyword(int depth, Object* schema) {
    switch (Below(14)) {
      case 0:
        schema->Set("type", *Typed().Find("type"));
        return;
      case 1:
        schema->Set(Pick({"maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum", "multipleOf"}),
                    Value(*json::Number::Parse(Pick({"0.5", "1", "2", "7", "1e-9"}))));
        return;
      case 2:
        schema->Set(Pick({"maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties"}),
                    Count());
        return;
      case 3:
        schema->Set("pattern", Value(Pick({"^a", "a+$", "[0-9]", "(a|aa)+$", "^.{2}$", "\\W"})));
        return;
      case 4:
        schema->Set("const", Instance(1));
        return;
      case 5:
        schema->Set("enum", Value(Array{Instance(1), Instance(1), Instance(0)}));
        return;
      case 6:
        schema->Set("items", Below(2) == 0 ? Schema(depth) : Schemas(depth));
        return;
      case 7:
        schema->Set(
            Pick({"additionalItems", "contains", "additionalProperties", "propertyNames", "not", "if", "then", "else"}),
            Schema(depth));
        return;
      case 8:
        schema->Set("uniqueItems", Value(true));
        return;
      case 9:
        schema->Set("required", Names());
        return;
      case 10:
        schema->Set("properties", NamedSchemas(depth));
        return;
      case 11: {
        Object schemas;
        schemas.Set(Pick({"^a", "b", "."}), Schema(depth));
        schema->Set("patternProperties", Value(schemas));
        return;
      }
      case 12: {
        Object dependencies;
        dependencies.Set(Name(), Below(2) == 0 ? Names() : Schema(depth));
        schema->Set("dependencies", Value(dependencies));
        return;
      }
      default:
        schema->Set(Pick({"allOf", "anyOf", "oneOf"}), Schemas(depth));
        return;
    }
  }

  std::mt19937 random_;
};

Value With(std::initializer_list<std::pair<const char*, Value>> members) {
  Object object;
  for (const auto& [name, value] : members) object.Set(name, value);
  return Value(object);
}

Outcome Judge(const Value& schema, const Value& instance) {
  const auto compiled = Compile(schema);
  EXPECT_TRUE(compiled.ok()) << compiled.status();
  return (*compiled)->Validate(instance).outcome;
}

TEST(SchemaProperty, CombinationsKeepTheLawsOfLogic) {
  int violated = 0;
  for (uint32_t seed = 0; seed < 1000; ++seed) {
    Generator generator(seed);
    const Value schema = generator.Schema(3);
    const Value instance = generator.Instance(3);
    const std::string what = json::Canonical(schema) + " on " + json::Canonical(instance);
    const auto compiled = Compile(schema);
    ASSERT_TRUE(compiled.ok()) << what << compiled.status();
    const Outcome outcome = (*compiled)->Validate(instance).outcome;
    ASSERT_NE(outcome, Outcome::kUnenforceable) << what;
    const Outcome opposite = outcome == Outcome::kOk ? Outcome::kViolated : Outcome::kOk;
    violated += outcome == Outcome::kViolated;

    const Value yes(true);
    const Value no(false);
    EXPECT_EQ(Judge(With({{"not", schema}}), instance), opposite) << what;
    EXPECT_EQ(Judge(With({{"allOf", Value(Array{schema, yes, schema})}}), instance), outcome) << what;
    EXPECT_EQ(Judge(With({{"anyOf", Value(Array{no, schema})}}), instance), outcome) << what;
    EXPECT_EQ(Judge(With({{"oneOf", Value(Array{no, schema})}}), instance), outcome) << what;
    EXPECT_EQ(Judge(With({{"oneOf", Value(Array{yes, schema})}}), instance), opposite) << what;
    EXPECT_EQ(Judge(With({{"if", schema}, {"then", yes}, {"else", no}}), instance), outcome) << what;
    EXPECT_EQ(Judge(With({{"definitions", With({{"s", schema}})}, {"$ref", Value("#/definitions/s")}}), instance),
              outcome)
        << what;
    EXPECT_EQ(Judge(With({{"items", schema}}), Value(Array{instance, instance})), outcome) << what;
    EXPECT_EQ(Judge(With({{"contains", schema}}), Value(Array{instance})), outcome) << what;
    EXPECT_EQ(Judge(With({{"properties", With({{"p", schema}})}}), With({{"p", instance}})), outcome) << what;
    EXPECT_EQ(Judge(With({{"const", instance}}), instance), Outcome::kOk) << what;
  }
  // Neither answer is rare, or these laws would say little.
  EXPECT_GT(violated, 200);
  EXPECT_LT(violated, 800);
}

TEST(SchemaProperty, ViolationsPointIntoTheInstanceAndNameAKeyword) {
  for (uint32_t seed = 10'000; seed < 12'000; ++seed) {
    Generator generator(seed);
    const Value schema = generator.Schema(3);
    const Value instance = generator.Instance(3);
    const Result result = (*Compile(schema))->Validate(instance);
    if (result.outcome != Outcome::kViolated) {
      EXPECT_EQ(result.pointer + result.keyword + result.sentence, "");
      continue;
    }
    EXPECT_FALSE(result.keyword.empty());
    EXPECT_FALSE(result.sentence.empty());
    EXPECT_NE(json::Get(instance, *json::Pointer::Parse(result.pointer)), nullptr) << result.pointer;
  }
}

TEST(SchemaProperty, FewerStepsNeverChangeAVerdictOnlyWithholdIt) {
  for (uint32_t seed = 20'000; seed < 21'000; ++seed) {
    Generator generator(seed);
    const auto schema = *Compile(generator.Schema(3));
    const Value instance = generator.Instance(3);
    const Outcome outcome = schema->Validate(instance).outcome;
    bool judged = false;
    for (int64_t steps = 0; steps <= 64; ++steps) {
      const Outcome withheld = schema->Validate(instance, steps).outcome;
      if (withheld == Outcome::kUnenforceable) {
        EXPECT_FALSE(judged) << "more steps were too few where fewer were enough";
      } else {
        judged = true;
        EXPECT_EQ(withheld, outcome);
      }
    }
  }
}

TEST(SchemaProperty, AnyJsonAtAllIsCompiledOrRefused) {
  int compiled = 0;
  for (uint32_t seed = 0; seed < 5000; ++seed) {
    Generator generator(seed);
    // A schema in text, with bytes changed; what is still JSON is tried.
    std::string text = json::Canonical(generator.Schema(4));
    for (int i = generator.Below(4); i > 0; --i) {
      text[static_cast<size_t>(generator.Below(static_cast<int>(text.size())))] =
          "{}[]\":,0a-#/\\(*+?"[generator.Below(17)];
    }
    const auto document = json::Parse(text);
    if (!document.ok()) continue;
    const auto schema = Compile(*document);
    if (!schema.ok()) continue;
    ++compiled;
    (*schema)->Validate(generator.Instance(4));
  }
  EXPECT_GT(compiled, 1000);
}

}  // namespace
}  // namespace tally::schema
