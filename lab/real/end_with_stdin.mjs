// Loaded before the scripted provider: it ends when whoever started it is gone.
process.stdin.on("end", () => process.exit()).resume();
