// The lab's endpoints on node:http. Contract: files/endpoints.yml; environment: files/python/work.py.
import cluster from 'node:cluster'
import { execFile } from 'node:child_process'
import { chmodSync, rmSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import http from 'node:http'
import { setTimeout } from 'node:timers/promises'

import pg from 'pg'

const WORKERS = Number(process.env.LAB_WORKERS)
const SOCKET = process.env.LAB_LISTEN.startsWith('unix:') ? process.env.LAB_LISTEN.slice(5) : null

const JSON_TYPE = 'application/json'
const TEXT = 'text/plain; charset=utf-8'
const HTML = 'text/html; charset=utf-8'

const AGENTS = `
  SELECT a.id, a.first_name, a.last_name, a.extension, a.email, s.status, s.since
  FROM agents a JOIN login_status s ON s.agent_id = a.id
  ORDER BY a.id
`

// The sub-select draws one number for the statement, not one for each row.
const WRITE = `
  UPDATE visits SET visits = visits + 1
  WHERE id = (SELECT 1 + floor(random() * 10000)::integer)
  RETURNING id
`

const FORTUNES = 'SELECT id, message FROM fortune'

const READ = `
  SELECT id, name, category, price, quantity, active, tags, rating_score, rating_count
  FROM items WHERE id = $1
`
const CREATE = `
  INSERT INTO items (id, name, category, price, quantity) VALUES ($1, $2, $3, $4, $5)
  ON CONFLICT (id) DO UPDATE SET
    name = excluded.name, category = excluded.category,
    price = excluded.price, quantity = excluded.quantity
  RETURNING id, name, category, price, quantity
`
const UPDATE = `
  UPDATE items SET name = $1, price = $2, quantity = $3 WHERE id = $4
  RETURNING id, name, price, quantity
`
const ITEMS = '/crud/items'

const NAME = 'Ada'
// What render_table shows: 6 rows of 4 columns.
const TABLE = [1, 2, 3, 4, 5, 6].map((row) => [1, 2, 3, 4].map((column) => `${row}.${column}`))

// Half of what is looked up is in the set.
const SET = new Set(Array.from({ length: 1000 }, (_, n) => `item ${n}`))
const SOUGHT = Array.from({ length: 50000 }, (_, n) => `item ${n % 2000}`)

const LONGEST_BOOK_DELAY_S = 3

const pool = new pg.Pool({
  connectionString: process.env.LAB_DATABASE,
  max: Number(process.env.LAB_POOL_SIZE),
  idleTimeoutMillis: 0
})
// Without a listener a connection that breaks while idle would end the process.
pool.on('error', (error) => console.error(error.message))

const agent = new http.Agent({ keepAlive: true, maxFreeSockets: 16384 })

// Numbers from 0 to 1, the same in the same order after every start (Lehmer's generator).
let seed = 20150201
function random () {
  seed = (seed * 48271) % 2147483647
  return seed / 2147483647
}

// Node's timers count whole milliseconds and may fire up to one too early.
function wait (ms, options) {
  return setTimeout(ms + 1, undefined, options)
}

function escaped (text) {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}

const page = (title, body) =>
  `<!DOCTYPE html><html><head><title>${escaped(title)}</title></head><body>${body}</body></html>`
const cell = (value) => `<td>${escaped(value)}</td>`
const row = (values) => `<tr>${values.map(cell).join('')}</tr>`

function send (response, type, body, status = 200) {
  response.writeHead(status, { 'Content-Type': type, 'Content-Length': Buffer.byteLength(body) })
  response.end(body)
}

function sendJson (response, value, status = 200) {
  send(response, JSON_TYPE, JSON.stringify(value), status)
}

function refuse (response, status) {
  response.writeHead(status, { 'Content-Length': 0 })
  response.end()
}

async function read (stream) {
  const parts = []
  for await (const part of stream) parts.push(part)
  return Buffer.concat(parts)
}

function index (request, response) {
  sendJson(response, { hello: 'world' })
}

function hello (request, response) {
  send(response, TEXT, 'Hello, World!')
}

async function agents (request, response) {
  const { rows } = await pool.query(AGENTS)
  sendJson(response, { agents: rows })
}

async function write (request, response) {
  const { rowCount } = await pool.query(WRITE)
  sendJson(response, { written: rowCount })
}

function renderName (request, response) {
  send(response, HTML, page('Hello', `<p>Hello, ${escaped(NAME)}!</p>`))
}

function renderTable (request, response) {
  send(response, HTML, page('Table', `<table>${TABLE.map(row).join('')}</table>`))
}

async function fortunes (request, response) {
  const { rows } = await pool.query(FORTUNES)
  rows.push({ id: 0, message: 'Additional fortune added at request time.' })
  rows.sort((a, b) => (a.message < b.message ? -1 : 1))
  const table = rows.map(({ id, message }) => row([String(id), message])).join('')
  send(response, HTML, page('Fortunes', `<table><tr><th>id</th><th>message</th></tr>${table}</table>`))
}

async function createItem (request, response) {
  const { id, name, category, price, quantity } = JSON.parse(await read(request))
  const { rows } = await pool.query(CREATE, [id, name, category, price, quantity])
  sendJson(response, rows[0], 201)
}

async function readItem (request, response, id) {
  const { rows } = await pool.query(READ, [id])
  if (rows.length === 0) return refuse(response, 404)
  const { rating_score: score, rating_count: count, ...item } = rows[0]
  sendJson(response, { ...item, rating: { score, count } })
}

async function updateItem (request, response, id) {
  const { name, price, quantity } = JSON.parse(await read(request))
  const { rows } = await pool.query(UPDATE, [name, price, quantity, id])
  if (rows.length === 0) return refuse(response, 404)
  sendJson(response, rows[0])
}

function lookup (request, response) {
  let found = 0
  for (const item of SOUGHT) {
    if (SET.has(item)) found += 1
  }
  sendJson(response, { found })
}

async function sleep (request, response) {
  await wait(50)
  sendJson(response, { slept_ms: 50 })
}

async function complex (request, response) {
  await wait(50)
  await Promise.all([wait(50), wait(50)])
  await wait(50, { signal: AbortSignal.timeout(25 + 1) }).catch(() => {})
  sendJson(response, { slept_ms: 125 })
}

function ask (url) {
  return new Promise((resolve, reject) => {
    const request = http.get(url, { agent }, async (answer) => {
      try {
        resolve(await read(answer))
      } catch (error) {
        reject(error)
      }
    })
    request.on('error', reject)
  })
}

async function upstream (request, response) {
  send(response, TEXT, await ask(process.env.LAB_UPSTREAM))
}

async function book (request, response) {
  await wait(1000 * Math.floor(random() * (LONGEST_BOOK_DELAY_S + 1)))
  send(response, HTML, await readFile(process.env.LAB_BOOK))
}

const ROUTES = new Map([
  ['/index', index],
  ['/hello', hello],
  ['/agents', agents],
  ['/write', write],
  ['/render_name', renderName],
  ['/render_table', renderTable],
  ['/fortunes', fortunes],
  ['/lookup', lookup],
  ['/sleep', sleep],
  ['/complex', complex],
  ['/upstream', upstream],
  ['/book', book]
])

const ONE_ITEM = new RegExp(`^${ITEMS}/(\\d+)$`)

// Handlers by the request's method, and the item that the path names.
function route (path) {
  if (ROUTES.has(path)) return [{ GET: ROUTES.get(path) }]
  if (path === ITEMS) return [{ POST: createItem }]
  const item = ONE_ITEM.exec(path)
  return item ? [{ GET: readItem, PUT: updateItem }, Number(item[1])] : []
}

async function answer (request, response) {
  const [handlers, id] = route(request.url.split('?', 1)[0])
  if (!handlers) return refuse(response, 404)
  const handler = handlers[request.method]
  if (!handler) return refuse(response, 405)
  try {
    await handler(request, response, id)
  } catch (error) {
    console.error(error)
    refuse(response, 500)
  }
}

async function serve (listening) {
  // All of them at once, so that no connection is made under load.
  const clients = await Promise.all(Array.from({ length: pool.options.max }, () => pool.connect()))
  for (const client of clients) client.release()

  // nginx keeps its connections for 60 s at most; it is to be the one that closes them.
  const server = http.createServer({ keepAliveTimeout: 120_000 }, answer)
  const [address, port] = process.env.LAB_LISTEN.split(':')
  const where = SOCKET ? { path: SOCKET } : { host: address, port: Number(port) }
  server.listen({ ...where, backlog: Number(process.env.LAB_BACKLOG) }, listening)
}

function ready () {
  // nginx runs as another user.
  if (SOCKET) chmodSync(SOCKET, 0o666)
  if (process.env.NOTIFY_SOCKET) {
    execFile('systemd-notify', ['--ready'], (error) => {
      if (error) throw error
    })
  }
}

if (cluster.isPrimary && SOCKET) rmSync(SOCKET, { force: true })

if (cluster.isPrimary && WORKERS > 1) {
  let missing = WORKERS
  cluster.on('listening', () => {
    missing -= 1
    if (missing === 0) ready()
  })
  // All end when one of them ends, so that none is missed.
  cluster.on('exit', () => {
    console.error('a worker ended')
    process.exit(1)
  })
  for (let n = 0; n < WORKERS; n += 1) cluster.fork()
} else {
  await serve(cluster.isPrimary ? ready : undefined)
}
