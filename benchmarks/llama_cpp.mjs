// llama.cpp for benchmarks/decode.py: `node llama_cpp.mjs FOLDER MODEL.gguf THREADS CONTEXT`.
//
// FOLDER is where node-llama-cpp is installed. Reads one JSON line a turn, {"prompt": text, "tokens": limit}, and
// writes one: {"prompt_tokens", "first_seconds", "tokens", "decode_seconds", "text"}. `first_seconds` is the time to
// the first token, `decode_seconds` that of the `tokens` after it. Decoding is greedy; nothing is kept between turns.
import path from "node:path";
import readline from "node:readline";
import {pathToFileURL} from "node:url";

const [folder, modelPath, threads, contextSize] = process.argv.slice(2);
const entry = path.resolve(folder, "node_modules/node-llama-cpp/dist/index.js");
const {getLlama} = await import(pathToFileURL(entry).href);

const llama = await getLlama({gpu: false, build: "never", maxThreads: Number(threads), logLevel: "error"});
const model = await llama.loadModel({modelPath});
const context = await model.createContext({
    contextSize: Number(contextSize), batchSize: Number(contextSize), threads: Number(threads)
});
const sequence = context.getSequence();
console.log(JSON.stringify({system: llama.systemInfo.trim()}));

for await (const line of readline.createInterface({input: process.stdin})) {
    const {prompt, tokens} = JSON.parse(line);
    const ids = model.tokenize(prompt, true);
    await sequence.clearHistory();
    const started = performance.now();
    let first = started;
    const written = [];
    for await (const token of sequence.evaluate(ids, {temperature: 0})) {
        if (written.length === 0)
            first = performance.now();
        written.push(token);
        if (written.length > tokens)
            break;
    }
    const ended = performance.now();
    console.log(JSON.stringify({
        prompt_tokens: ids.length,
        first_seconds: (first - started) / 1000,
        tokens: Math.max(written.length - 1, 0),
        decode_seconds: (ended - first) / 1000,
        text: model.detokenize(written)
    }));
}
await llama.dispose();
