// The loop of the drivers for Node. It reads the tests' commands and writes the answers, one at a
// time.

import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'

export const WITHIN_MS = 30_000

// Returns the files for TLS, with the names of Node's tls module; undefined without TLS.
export function tls () {
  const files = process.argv.slice(3, login() ? 4 : 6)
  const [ca, cert, key] = files.map(name => readFileSync(name))
  return ca && { ca, cert, key }
}

// Returns mechanism, user and password; undefined without a login.
export function login () {
  const [mechanism, username, password] = process.argv.slice(4)
  return password && process.argv.length === 7 ? { mechanism, username, password } : undefined
}

export async function serve (driver) {
  // Text that a library prints must not get between the answers.
  for (const name of ['log', 'info', 'debug']) console[name] = console.error
  for await (const line of createInterface({ input: process.stdin })) {
    const { do: name, ...command } = JSON.parse(line)
    let answer
    try {
      answer = { ok: (await driver[name](command)) ?? {} }
    } catch (error) {
      answer = { error: described(error) }
    }
    process.stdout.write(JSON.stringify(answer) + '\n')
  }
  process.exit(0)
}

export async function until (condition, withinMs = WITHIN_MS) {
  const deadline = Date.now() + withinMs
  while (!condition() && Date.now() < deadline) {
    await new Promise(resolve => setTimeout(resolve, 10))
  }
}

function described (error) {
  const causes = [...(error.errors ?? []), ...(error.cause ? [error.cause] : [])]
  return [`${error.name}: ${error.message}`, ...causes.map(described)].join(' < ')
}
