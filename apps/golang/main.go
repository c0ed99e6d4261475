// The lab's endpoints on net/http. Contract: files/endpoints.yml; environment: files/python/work.py.
package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"log"
	"math/rand"
	"net"
	"net/http"
	"os"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	_ "github.com/lib/pq"
)

const (
	typeJSON = "application/json"
	typeText = "text/plain; charset=utf-8"
	typeHTML = "text/html; charset=utf-8"

	itemsPath = "/crud/items"

	agentsQuery = `
		SELECT a.id, a.first_name, a.last_name, a.extension, a.email, s.status, s.since
		FROM agents a JOIN login_status s ON s.agent_id = a.id
		ORDER BY a.id`

	// The sub-select draws one number for the statement, not one for each row.
	writeStatement = `
		UPDATE visits SET visits = visits + 1
		WHERE id = (SELECT 1 + floor(random() * 10000)::integer)
		RETURNING 1`

	fortunesQuery = `SELECT id, message FROM fortune`

	readQuery = `
		SELECT id, name, category, price, quantity, active, tags, rating_score, rating_count
		FROM items WHERE id = $1`
	createStatement = `
		INSERT INTO items (id, name, category, price, quantity) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (id) DO UPDATE SET
			name = excluded.name, category = excluded.category,
			price = excluded.price, quantity = excluded.quantity
		RETURNING id, name, category, price, quantity`
	updateStatement = `
		UPDATE items SET name = $1, price = $2, quantity = $3 WHERE id = $4
		RETURNING id, name, price, quantity`

	// Seconds.
	longestBookDelay = 3

	// nginx keeps its connections for 60 s at most; it is to be the one that closes them.
	idleTimeout = 120 * time.Second
)

type agent struct {
	ID        int    `json:"id"`
	FirstName string `json:"first_name"`
	LastName  string `json:"last_name"`
	Extension string `json:"extension"`
	Email     string `json:"email"`
	Status    string `json:"status"`
	Since     string `json:"since"`
}

type fortune struct {
	ID      int
	Message string
}

// item is a row of the table; what a request or an answer does not have is left out.
type item struct {
	ID       int             `json:"id"`
	Name     string          `json:"name"`
	Category string          `json:"category,omitempty"`
	Price    int             `json:"price"`
	Quantity int             `json:"quantity"`
	Active   *bool           `json:"active,omitempty"`
	Tags     json.RawMessage `json:"tags,omitempty"`
	Rating   *rating         `json:"rating,omitempty"`
}

type rating struct {
	Score int `json:"score"`
	Count int `json:"count"`
}

// app is what the handlers share.
type app struct {
	db       *sql.DB
	client   *http.Client
	upstream string
	book     string

	set    map[string]struct{}
	sought []string
	table  [][]string

	delaysLock sync.Mutex
	delays     *rand.Rand
}

var (
	nameTemplate = template.Must(template.New("name").Parse(
		`<!DOCTYPE html><html><head><title>Hello</title></head>` +
			`<body><p>Hello, {{.}}!</p></body></html>`))
	tableTemplate = template.Must(template.New("table").Parse(
		`<!DOCTYPE html><html><head><title>Table</title></head><body><table>` +
			`{{range .}}<tr>{{range .}}<td>{{.}}</td>{{end}}</tr>{{end}}` +
			`</table></body></html>`))
	fortunesTemplate = template.Must(template.New("fortunes").Parse(
		`<!DOCTYPE html><html><head><title>Fortunes</title></head><body>` +
			`<table><tr><th>id</th><th>message</th></tr>` +
			`{{range .}}<tr><td>{{.ID}}</td><td>{{.Message}}</td></tr>{{end}}` +
			`</table></body></html>`))
)

func send(w http.ResponseWriter, contentType string, body []byte) {
	sendStatus(w, http.StatusOK, contentType, body)
}

func sendStatus(w http.ResponseWriter, status int, contentType string, body []byte) {
	w.Header().Set("Content-Type", contentType)
	// Go sends longer bodies chunked where it is not told their length.
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	w.Write(body)
}

func sendJSON(w http.ResponseWriter, value any) {
	sendStatusJSON(w, http.StatusOK, value)
}

func sendStatusJSON(w http.ResponseWriter, status int, value any) {
	body, err := json.Marshal(value)
	if err != nil {
		fail(w, err)
		return
	}
	sendStatus(w, status, typeJSON, body)
}

func render(w http.ResponseWriter, page *template.Template, value any) {
	var body bytes.Buffer
	if err := page.Execute(&body, value); err != nil {
		fail(w, err)
		return
	}
	send(w, typeHTML, body.Bytes())
}

func fail(w http.ResponseWriter, err error) {
	log.Print(err)
	http.Error(w, "", http.StatusInternalServerError)
}

func index(w http.ResponseWriter, r *http.Request) {
	sendJSON(w, map[string]string{"hello": "world"})
}

func hello(w http.ResponseWriter, r *http.Request) {
	send(w, typeText, []byte("Hello, World!"))
}

func (a *app) agents(w http.ResponseWriter, r *http.Request) {
	// Not with the request's context: a client that goes away would cost its connection to the
	// database, and a new one would be made under load.
	rows, err := a.db.Query(agentsQuery)
	if err != nil {
		fail(w, err)
		return
	}
	defer rows.Close()
	var found []agent
	for rows.Next() {
		var a agent
		err := rows.Scan(&a.ID, &a.FirstName, &a.LastName, &a.Extension, &a.Email, &a.Status, &a.Since)
		if err != nil {
			fail(w, err)
			return
		}
		found = append(found, a)
	}
	if err := rows.Err(); err != nil {
		fail(w, err)
		return
	}
	sendJSON(w, map[string][]agent{"agents": found})
}

func (a *app) write(w http.ResponseWriter, r *http.Request) {
	var written int
	if err := a.db.QueryRow(writeStatement).Scan(&written); err != nil {
		fail(w, err)
		return
	}
	sendJSON(w, map[string]int{"written": written})
}

func renderName(w http.ResponseWriter, r *http.Request) {
	render(w, nameTemplate, "Ada")
}

func (a *app) renderTable(w http.ResponseWriter, r *http.Request) {
	render(w, tableTemplate, a.table)
}

func (a *app) fortunes(w http.ResponseWriter, r *http.Request) {
	rows, err := a.db.Query(fortunesQuery)
	if err != nil {
		fail(w, err)
		return
	}
	defer rows.Close()
	var found []fortune
	for rows.Next() {
		var f fortune
		if err := rows.Scan(&f.ID, &f.Message); err != nil {
			fail(w, err)
			return
		}
		found = append(found, f)
	}
	if err := rows.Err(); err != nil {
		fail(w, err)
		return
	}
	found = append(found, fortune{Message: "Additional fortune added at request time."})
	sort.Slice(found, func(i, j int) bool { return found[i].Message < found[j].Message })
	render(w, fortunesTemplate, found)
}

// items creates an item or replaces it.
func (a *app) items(w http.ResponseWriter, r *http.Request) {
	var i item
	if r.Method != http.MethodPost {
		http.Error(w, "", http.StatusMethodNotAllowed)
	} else if err := json.NewDecoder(r.Body).Decode(&i); err != nil {
		http.Error(w, "", http.StatusBadRequest)
	} else if err := a.db.QueryRow(createStatement, i.ID, i.Name, i.Category, i.Price, i.Quantity).
		Scan(&i.ID, &i.Name, &i.Category, &i.Price, &i.Quantity); err != nil {
		fail(w, err)
	} else {
		sendStatusJSON(w, http.StatusCreated, i)
	}
}

// oneItem reads or updates the item that the path names.
func (a *app) oneItem(w http.ResponseWriter, r *http.Request) {
	id, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, itemsPath+"/"))
	if err != nil {
		http.NotFound(w, r)
		return
	}
	var i item
	switch r.Method {
	case http.MethodGet:
		i.Active, i.Rating = new(bool), new(rating)
		err = a.db.QueryRow(readQuery, id).Scan(&i.ID, &i.Name, &i.Category, &i.Price, &i.Quantity,
			i.Active, &i.Tags, &i.Rating.Score, &i.Rating.Count)
	case http.MethodPut:
		if err := json.NewDecoder(r.Body).Decode(&i); err != nil {
			http.Error(w, "", http.StatusBadRequest)
			return
		}
		i = item{Name: i.Name, Price: i.Price, Quantity: i.Quantity}
		err = a.db.QueryRow(updateStatement, i.Name, i.Price, i.Quantity, id).
			Scan(&i.ID, &i.Name, &i.Price, &i.Quantity)
	default:
		http.Error(w, "", http.StatusMethodNotAllowed)
		return
	}
	if err == sql.ErrNoRows {
		http.NotFound(w, r)
	} else if err != nil {
		fail(w, err)
	} else {
		sendJSON(w, i)
	}
}

func (a *app) lookup(w http.ResponseWriter, r *http.Request) {
	found := 0
	for _, item := range a.sought {
		if _, ok := a.set[item]; ok {
			found++
		}
	}
	sendJSON(w, map[string]int{"found": found})
}

func sleep(w http.ResponseWriter, r *http.Request) {
	time.Sleep(50 * time.Millisecond)
	sendJSON(w, map[string]int{"slept_ms": 50})
}

func complexWait(w http.ResponseWriter, r *http.Request) {
	time.Sleep(50 * time.Millisecond)

	var both sync.WaitGroup
	for i := 0; i < 2; i++ {
		both.Add(1)
		go func() {
			defer both.Done()
			time.Sleep(50 * time.Millisecond)
		}()
	}
	both.Wait()

	ctx, cancel := context.WithTimeout(r.Context(), 25*time.Millisecond)
	defer cancel()
	cutOff := time.NewTimer(50 * time.Millisecond)
	defer cutOff.Stop()
	select {
	case <-cutOff.C:
	case <-ctx.Done():
	}
	sendJSON(w, map[string]int{"slept_ms": 125})
}

func (a *app) askUpstream(w http.ResponseWriter, r *http.Request) {
	answer, err := a.client.Get(a.upstream)
	if err != nil {
		fail(w, err)
		return
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		fail(w, err)
		return
	}
	send(w, typeText, body)
}

func (a *app) readBook(w http.ResponseWriter, r *http.Request) {
	time.Sleep(a.bookDelay())
	body, err := os.ReadFile(a.book)
	if err != nil {
		fail(w, err)
		return
	}
	send(w, typeHTML, body)
}

// bookDelay gives the same delays in the same order after every start.
func (a *app) bookDelay() time.Duration {
	a.delaysLock.Lock()
	defer a.delaysLock.Unlock()
	return time.Duration(a.delays.Intn(longestBookDelay+1)) * time.Second
}

// openDatabase opens all connections at once, so that none is made under load.
func openDatabase(where string, size int) (*sql.DB, error) {
	db, err := sql.Open("postgres", where)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(size)
	db.SetMaxIdleConns(size)
	held := make([]*sql.Conn, size)
	for i := range held {
		if held[i], err = db.Conn(context.Background()); err != nil {
			return nil, err
		}
	}
	for _, conn := range held {
		conn.Close() // back to the pool
	}
	return db, nil
}

// listen opens the socket that where names: unix:<path> or <address>:<port>.
func listen(where string, backlog int) (net.Listener, error) {
	var listener net.Listener
	var err error
	if path := strings.TrimPrefix(where, "unix:"); path != where {
		if err = os.Remove(path); err != nil && !os.IsNotExist(err) {
			return nil, err
		}
		if listener, err = net.Listen("unix", path); err != nil {
			return nil, err
		}
		// nginx runs as another user.
		if err = os.Chmod(path, 0o666); err != nil {
			return nil, err
		}
	} else if listener, err = net.Listen("tcp", where); err != nil {
		return nil, err
	}

	// Go takes net.core.somaxconn for the backlog; listening once more sets another.
	raw, err := listener.(syscall.Conn).SyscallConn()
	if err != nil {
		return nil, err
	}
	var listenErr error
	err = raw.Control(func(fd uintptr) { listenErr = syscall.Listen(int(fd), backlog) })
	if err != nil {
		return nil, err
	}
	return listener, listenErr
}

// ready tells systemd that connections are accepted from now on.
func ready() error {
	where := os.Getenv("NOTIFY_SOCKET")
	if where == "" {
		return nil
	}
	conn, err := net.Dial("unixgram", where)
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = conn.Write([]byte("READY=1"))
	return err
}

// number is an environment variable's.
func number(name string) (int, error) {
	value, err := strconv.Atoi(os.Getenv(name))
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return value, nil
}

func run() error {
	workers, err := number("LAB_WORKERS")
	if err != nil {
		return err
	}
	backlog, err := number("LAB_BACKLOG")
	if err != nil {
		return err
	}
	poolSize, err := number("LAB_POOL_SIZE")
	if err != nil {
		return err
	}
	runtime.GOMAXPROCS(workers)

	db, err := openDatabase(os.Getenv("LAB_DATABASE"), poolSize)
	if err != nil {
		return err
	}
	a := &app{
		db: db,
		// Without this Go keeps no more than two connections to a host.
		client:   &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16384}},
		upstream: os.Getenv("LAB_UPSTREAM"),
		book:     os.Getenv("LAB_BOOK"),
		set:      map[string]struct{}{},
		delays:   rand.New(rand.NewSource(1)),
	}
	// Half of what is looked up is in the set.
	for n := 0; n < 1000; n++ {
		a.set[fmt.Sprintf("item %d", n)] = struct{}{}
	}
	for n := 0; n < 50000; n++ {
		a.sought = append(a.sought, fmt.Sprintf("item %d", n%2000))
	}
	// What render_table shows: 6 rows of 4 columns.
	for row := 1; row <= 6; row++ {
		var values []string
		for column := 1; column <= 4; column++ {
			values = append(values, fmt.Sprintf("%d.%d", row, column))
		}
		a.table = append(a.table, values)
	}

	mux := http.NewServeMux()
	mux.HandleFunc("/index", index)
	mux.HandleFunc("/hello", hello)
	mux.HandleFunc("/agents", a.agents)
	mux.HandleFunc("/write", a.write)
	mux.HandleFunc("/render_name", renderName)
	mux.HandleFunc("/render_table", a.renderTable)
	mux.HandleFunc("/fortunes", a.fortunes)
	mux.HandleFunc(itemsPath, a.items)
	mux.HandleFunc(itemsPath+"/", a.oneItem)
	mux.HandleFunc("/lookup", a.lookup)
	mux.HandleFunc("/sleep", sleep)
	mux.HandleFunc("/complex", complexWait)
	mux.HandleFunc("/upstream", a.askUpstream)
	mux.HandleFunc("/book", a.readBook)

	listener, err := listen(os.Getenv("LAB_LISTEN"), backlog)
	if err != nil {
		return err
	}
	if err := ready(); err != nil {
		return err
	}
	server := &http.Server{Handler: mux, IdleTimeout: idleTimeout}
	return server.Serve(listener)
}

func main() {
	log.SetFlags(0)
	log.Fatal(run())
}
