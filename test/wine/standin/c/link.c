// The client of the stand-in link; see link.h.
#include "link.h"

#define FRAME_MAX (64u << 20) // no frame of either side is longer
#define IDLE_MAX 16           // connections that are kept for the next call
#define STATUS_SIZE 4
#define FRESH_MILLISECONDS 1000 // for so long nobody asks whether a connection still stands

// Statics are zero at the start, which is the right start for each of them.
static SRWLOCK lock; // of the rest
static struct sockaddr_in server;
static BOOL found;
static struct {
	SOCKET socket;
	ULONGLONG since; // milliseconds
} idle[IDLE_MAX];
static int idleCount;

// The connection by which this program lives at the node server, which closes what the
// program has open there when the connection ends; and the server's number for the program.
static SRWLOCK lifeLock;
static BOOL living;
static SOCKET life;
static ULONGLONG program;

void *csi_alloc(SIZE_T size) { return HeapAlloc(GetProcessHeap(), HEAP_ZERO_MEMORY, size); }

void csi_free(void *memory) {
	if (memory) HeapFree(GetProcessHeap(), 0, memory);
}

// The copy is spelled out because a kernel driver has no C library.
static void copy(BYTE *to, const BYTE *from, SIZE_T size) {
	__movsb(to, from, size);
}

// --- writing

static BYTE *extend(csi_buffer *b, SIZE_T more) {
	if (b->failed || more > FRAME_MAX || b->size + more > FRAME_MAX) {
		b->failed = TRUE;
		return NULL;
	}
	if (b->size + more > b->capacity) {
		SIZE_T capacity = (b->size + more) * 2 + 64;
		BYTE *data = csi_alloc(capacity);
		if (!data) {
			b->failed = TRUE;
			return NULL;
		}
		copy(data, b->data, b->size);
		csi_free(b->data);
		b->data = data;
		b->capacity = capacity;
	}
	BYTE *end = b->data + b->size;
	b->size += more;
	return end;
}

void csi_put_raw(csi_buffer *b, const void *data, SIZE_T size) {
	BYTE *to = extend(b, size);
	if (to) copy(to, data, size);
}

// x86 is little endian, as the link is.
void csi_put_u8(csi_buffer *b, BYTE value) { csi_put_raw(b, &value, sizeof value); }
void csi_put_u16(csi_buffer *b, WORD value) { csi_put_raw(b, &value, sizeof value); }
void csi_put_u32(csi_buffer *b, DWORD value) { csi_put_raw(b, &value, sizeof value); }
void csi_put_u64(csi_buffer *b, ULONGLONG value) { csi_put_raw(b, &value, sizeof value); }

void csi_put_bytes(csi_buffer *b, const void *data, SIZE_T size) {
	csi_put_u32(b, (DWORD)size);
	csi_put_raw(b, data, size);
}

void csi_put_text(csi_buffer *b, const WCHAR *text, int count) {
	if (text && count < 0) count = lstrlenW(text);
	if (!text || count == 0) {
		csi_put_u32(b, 0);
		return;
	}
	int size = WideCharToMultiByte(CP_UTF8, 0, text, count, NULL, 0, NULL, NULL);
	if (size <= 0) {
		b->failed = TRUE;
		return;
	}
	csi_put_u32(b, (DWORD)size);
	BYTE *to = extend(b, (SIZE_T)size);
	if (to) WideCharToMultiByte(CP_UTF8, 0, text, count, (char *)to, size, NULL, NULL);
}

void csi_buffer_free(csi_buffer *b) {
	csi_free(b->data);
	*b = (csi_buffer){0};
}

// --- reading

const BYTE *csi_get_raw(csi_reader *r, SIZE_T size) {
	if (r->failed || size > r->size - r->at) {
		r->failed = TRUE;
		return NULL;
	}
	const BYTE *start = r->data + r->at;
	r->at += size;
	return start;
}

static ULONGLONG number(csi_reader *r, int size) {
	ULONGLONG value = 0;
	const BYTE *from = csi_get_raw(r, size);
	for (int i = 0; from && i < size; i++) value |= (ULONGLONG)from[i] << (8 * i);
	return value;
}

BYTE csi_get_u8(csi_reader *r) { return (BYTE)number(r, 1); }
WORD csi_get_u16(csi_reader *r) { return (WORD)number(r, 2); }
DWORD csi_get_u32(csi_reader *r) { return (DWORD)number(r, 4); }
ULONGLONG csi_get_u64(csi_reader *r) { return number(r, 8); }

const BYTE *csi_get_bytes(csi_reader *r, DWORD *size) {
	*size = csi_get_u32(r);
	const BYTE *data = csi_get_raw(r, *size);
	if (!data) *size = 0;
	return data;
}

WCHAR *csi_get_text(csi_reader *r, DWORD *length) {
	DWORD size;
	const BYTE *data = csi_get_bytes(r, &size);
	if (length) *length = 0;
	if (!data) return NULL;
	// A text in UTF-16 has at most as many units as bytes in UTF-8.
	WCHAR *text = csi_alloc(((SIZE_T)size + 1) * sizeof(WCHAR));
	if (!text) {
		r->failed = TRUE;
		return NULL;
	}
	int units = size ? MultiByteToWideChar(CP_UTF8, 0, (const char *)data, (int)size, text, (int)size) : 0;
	if (length) *length = (DWORD)units;
	return text;
}

DWORD csi_get_count(csi_reader *r, DWORD itemSize) {
	DWORD count = csi_get_u32(r);
	if (r->failed || (ULONGLONG)count * itemSize > r->size - r->at) {
		r->failed = TRUE;
		return 0;
	}
	return count;
}

// --- where the server is

// parse reads "127.0.0.1:PORT". Nothing but this machine is a node server.
static BOOL parse(const char *address, struct sockaddr_in *to) {
	static const char host[] = "127.0.0.1:";
	unsigned port = 0;
	for (int i = 0; host[i]; i++, address++) {
		if (*address != host[i]) return FALSE;
	}
	for (; *address >= '0' && *address <= '9' && port < 65536; address++) port = port * 10 + (unsigned)(*address - '0');
	if (*address || port == 0 || port > 65535) return FALSE;
	*to = (struct sockaddr_in){0};
	to->sin_family = AF_INET;
	to->sin_addr.s_addr = 0x0100007F;
	to->sin_port = (WORD)(port << 8 | port >> 8);
	return TRUE;
}

static BOOL lookUp(struct sockaddr_in *to) {
	char address[64];
	DWORD size = GetEnvironmentVariableA("CSI_STANDIN", address, sizeof address);
	if (size > 0 && size < sizeof address) return parse(address, to);
	size = sizeof address;
	return RegGetValueA(HKEY_LOCAL_MACHINE, "Software\\csi-windows-lab", "Address", RRF_RT_REG_SZ, NULL, address, &size) ==
			   ERROR_SUCCESS &&
		   parse(address, to);
}

BOOL csi_active(void) {
	AcquireSRWLockShared(&lock);
	BOOL active = found;
	ReleaseSRWLockShared(&lock);
	if (active) return TRUE;
	struct sockaddr_in address;
	if (!lookUp(&address)) return FALSE;
	AcquireSRWLockExclusive(&lock);
	server = address;
	found = TRUE;
	ReleaseSRWLockExclusive(&lock);
	return TRUE;
}

// --- connections

static void endLifeLocked(void) {
	if (living) closesocket(life);
	living = FALSE;
}

// quiet reports whether nothing comes in on a connection for a while, not even its end.
static BOOL quiet(SOCKET s, DWORD milliseconds) {
	fd_set set = {.fd_count = 1, .fd_array = {s}};
	struct timeval limit = {(long)(milliseconds / 1000), (long)(milliseconds % 1000 * 1000)};
	return select(0, &set, NULL, NULL, &limit) == 0;
}

static SOCKET takeIdle(BOOL *fresh) {
	SOCKET s = INVALID_SOCKET;
	AcquireSRWLockExclusive(&lock);
	if (idleCount > 0) {
		s = idle[--idleCount].socket;
		*fresh = GetTickCount64() - idle[idleCount].since < FRESH_MILLISECONDS;
	}
	ReleaseSRWLockExclusive(&lock);
	return s;
}

static void keep(SOCKET s) {
	AcquireSRWLockExclusive(&lock);
	if (idleCount < IDLE_MAX) {
		idle[idleCount].socket = s;
		idle[idleCount++].since = GetTickCount64();
		s = INVALID_SOCKET;
	}
	ReleaseSRWLockExclusive(&lock);
	if (s != INVALID_SOCKET) closesocket(s);
}

void csi_disconnect(void) {
	BOOL fresh;
	for (SOCKET s; (s = takeIdle(&fresh)) != INVALID_SOCKET;) closesocket(s);
	AcquireSRWLockExclusive(&lifeLock);
	endLifeLocked();
	ReleaseSRWLockExclusive(&lifeLock);
}

static SOCKET connectServer(void) {
	WSADATA data;
	if (WSAStartup(MAKEWORD(2, 2), &data) != 0) return INVALID_SOCKET; // counted; ends with the process
	SOCKET s = WSASocketW(AF_INET, SOCK_STREAM, IPPROTO_TCP, NULL, 0, WSA_FLAG_OVERLAPPED | WSA_FLAG_NO_HANDLE_INHERIT);
	if (s == INVALID_SOCKET) return s;
	BOOL on = TRUE;
	setsockopt(s, IPPROTO_TCP, TCP_NODELAY, (const char *)&on, sizeof on);
	if (connect(s, (const struct sockaddr *)&server, sizeof server) == 0) return s;
	closesocket(s);
	return INVALID_SOCKET;
}

static BOOL sendAll(SOCKET s, const BYTE *data, SIZE_T size) {
	while (size > 0) {
		int n = send(s, (const char *)data, (int)size, 0);
		if (n <= 0) return FALSE;
		data += n;
		size -= (SIZE_T)n;
	}
	return TRUE;
}

static BOOL receiveAll(SOCKET s, BYTE *data, SIZE_T size) {
	while (size > 0) {
		int n = recv(s, (char *)data, (int)size, 0);
		if (n <= 0) return FALSE;
		data += n;
		size -= (SIZE_T)n;
	}
	return TRUE;
}

// --- calls

// frame puts the header before the body, so that a request is one packet.
static BOOL frame(WORD operation, const csi_buffer *request, csi_buffer *whole) {
	csi_put_u32(whole, (DWORD)(request->size + sizeof operation));
	csi_put_u16(whole, operation);
	csi_put_raw(whole, request->data, request->size);
	return !request->failed && !whole->failed;
}

// receiveAnswer reads a length and what follows. Most answers are whole in the first
// piece, which matters: under Wine a call of winsock is several of Wine's server.
static BOOL receiveAnswer(SOCKET s, csi_answer *answer) {
	BYTE first[2048];
	DWORD length;
	int got = 0;
	while (got < (int)sizeof length) {
		int n = recv(s, (char *)first + got, (int)sizeof first - got, 0);
		if (n <= 0) return FALSE;
		got += n;
	}
	copy((BYTE *)&length, first, sizeof length);
	SIZE_T have = (SIZE_T)got - sizeof length;
	if (length < STATUS_SIZE || length > FRAME_MAX || have > length) return FALSE;
	answer->memory = csi_alloc(length);
	if (!answer->memory) return FALSE;
	copy(answer->memory, first + sizeof length, have);
	if (!receiveAll(s, answer->memory + have, length - have)) return FALSE;
	answer->body = (csi_reader){.data = answer->memory, .size = length};
	answer->status = csi_get_u32(&answer->body);
	return TRUE;
}

// introduce makes a connection that of a program, or of a new one for 0; FALSE when
// the server does not know the program, or does not answer.
static BOOL introduce(SOCKET s, ULONGLONG *id) {
	csi_buffer request = {0}, whole = {0};
	csi_answer answer = {0};
	csi_put_u64(&request, *id);
	BOOL ok = frame(CSI_PROGRAM, &request, &whole) && sendAll(s, whole.data, whole.size) && receiveAnswer(s, &answer) &&
			  answer.status == 0;
	if (ok) *id = csi_get_u64(&answer.body);
	csi_answer_free(&answer);
	csi_buffer_free(&request);
	csi_buffer_free(&whole);
	return ok;
}

// live makes sure that this program lives at the server, and gives its number. After
// a number that the server does not know, it begins a new life.
static BOOL live(ULONGLONG unknown, ULONGLONG *id) {
	AcquireSRWLockExclusive(&lifeLock);
	if (living && program == unknown) endLifeLocked();
	if (!living && (life = connectServer()) != INVALID_SOCKET) {
		program = 0;
		living = introduce(life, &program);
		if (!living) closesocket(life);
	}
	BOOL ok = living;
	*id = program;
	ReleaseSRWLockExclusive(&lifeLock);
	return ok;
}

// dial makes a connection of this program. The second attempt is for a server that
// was started again.
static SOCKET dial(void) {
	ULONGLONG id = 0;
	for (int attempt = 0; attempt < 2 && live(id, &id); attempt++) {
		SOCKET s = connectServer();
		if (s == INVALID_SOCKET) break;
		if (introduce(s, &id)) return s;
		closesocket(s);
	}
	return INVALID_SOCKET;
}

static SOCKET connection(void) {
	BOOL fresh;
	for (SOCKET s; (s = takeIdle(&fresh)) != INVALID_SOCKET;) {
		if (fresh || quiet(s, 0)) return s; // else the server was started again since
		closesocket(s);
	}
	return dial();
}

BOOL csi_begin(WORD operation, csi_buffer *request, csi_pending *pending) {
	csi_buffer whole = {0};
	BOOL ok = frame(operation, request, &whole) && csi_active();
	csi_buffer_free(request);
	pending->connection = ok ? connection() : INVALID_SOCKET;
	ok = pending->connection != INVALID_SOCKET && sendAll(pending->connection, whole.data, whole.size);
	csi_buffer_free(&whole);
	if (!ok) csi_abandon(pending);
	return ok;
}

BOOL csi_wait(const csi_pending *pending, DWORD milliseconds) {
	return milliseconds == INFINITE || !quiet(pending->connection, milliseconds);
}

BOOL csi_finish(csi_pending *pending, csi_answer *answer) {
	*answer = (csi_answer){0};
	if (receiveAnswer(pending->connection, answer)) {
		keep(pending->connection);
		return TRUE;
	}
	csi_abandon(pending);
	csi_answer_free(answer);
	answer->status = CSI_LOST;
	return FALSE;
}

void csi_abandon(csi_pending *pending) {
	if (pending->connection != INVALID_SOCKET) closesocket(pending->connection);
	pending->connection = INVALID_SOCKET;
}

BOOL csi_call(WORD operation, csi_buffer *request, csi_answer *answer) {
	csi_pending pending;
	*answer = (csi_answer){.status = CSI_UNREACHABLE};
	return csi_begin(operation, request, &pending) && csi_finish(&pending, answer);
}

void csi_answer_free(csi_answer *answer) {
	csi_free(answer->memory);
	*answer = (csi_answer){0};
}
