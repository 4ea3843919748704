// Reads AsyncAPI documents with the parser of the AsyncAPI project and says what it thinks of each, as JSON: a list of
// { file, errors, channels, operations, messages }. Run as: node validate.mjs FILE...
import { readFile } from "node:fs/promises";
import { Parser } from "@asyncapi/parser";

const parser = new Parser();
const verdicts = [];
for (const file of process.argv.slice(2)) {
  const { document, diagnostics } = await parser.parse(await readFile(file, "utf8"));
  // Severity 0 is an error. A warning is advice, such as to name a contact.
  const errors = diagnostics.filter(({ severity }) => severity === 0);
  verdicts.push({
    file,
    errors: errors.map(({ message, path }) => `${path.join(".")}: ${message}`),
    channels: document?.channels().length,
    operations: document?.operations().length,
    messages: document?.components().messages().length,
  });
}
console.log(JSON.stringify(verdicts));
