// The half of csidisk.sys that speaks to the node server; see disk.h.
#include "link.h"

#include "disk.h"

#define ERROR_OF_A_LOST_SERVER ERROR_DEV_NOT_EXIST
#define POLL_MILLISECONDS 1000    // how long the node may keep a question for new devices
#define RETRY_MILLISECONDS 100    // between two attempts to reach the server
#define IDLE_MILLISECONDS 20000   // after which a thread without work ends
#define STOP_MILLISECONDS 5000    // for threads to end when the driver is unloaded
#define NAME_UNITS 64

// diskFile is a device as one handle of a program has it open.
struct diskFile {
	WCHAR path[NAME_UNITS + 8];
	ULONG share;
	LONG holders; // the program, and each request that is under way
	SRWLOCK lock; // of the rest
	BOOL tried;   // the node has been asked to open it
	ULONG error;  // what it answered
	ULONGLONG handle;
};

static SRWLOCK lock; // of the rest
static CONDITION_VARIABLE asked, ending; // a request came; a thread ended, or all shall
static diskRequest *queue, **queueEnd = &queue;
static LONG waiting, idle, threads; // requests in the queue, threads without work, threads at all
static BOOL stopping;

// --- calls of the node

// call sends a request that ends as a Win32 error number.
static ULONG call(WORD operation, csi_buffer *in, csi_answer *out) {
	return csi_call(operation, in, out) ? out->status : ERROR_OF_A_LOST_SERVER;
}

static void closeHandle(ULONGLONG handle) {
	csi_buffer in = {0};
	csi_answer out;
	if (!handle) return;
	csi_put_u64(&in, handle);
	call(CSI_CLOSE_HANDLE, &in, &out);
	csi_answer_free(&out);
}

// openLocked opens the file at the node, once. The file's lock is held.
static ULONG openLocked(diskFile *file, ULONG access, ULONG share) {
	if (file->tried) return file->error;
	csi_buffer in = {0};
	csi_answer out;
	csi_put_text(&in, file->path, -1);
	csi_put_u32(&in, access);
	csi_put_u32(&in, share);
	csi_put_u8(&in, 0);
	csi_put_u8(&in, 0);
	file->tried = TRUE;
	file->error = call(CSI_CREATE_FILE, &in, &out);
	if (!file->error) file->handle = csi_get_u64(&out.body);
	if (out.body.failed) file->error = ERROR_INVALID_DATA;
	csi_answer_free(&out);
	return file->error;
}

static ULONG openFile(diskFile *file, ULONG access, ULONG share) {
	AcquireSRWLockExclusive(&file->lock);
	ULONG error = openLocked(file, access, share);
	ReleaseSRWLockExclusive(&file->lock);
	return error;
}

// closeFile closes the file at the node; whatever is asked of it afterwards fails.
static void closeFile(diskFile *file) {
	AcquireSRWLockExclusive(&file->lock);
	ULONGLONG handle = file->handle;
	file->tried = TRUE;
	file->error = ERROR_INVALID_HANDLE;
	file->handle = 0;
	ReleaseSRWLockExclusive(&file->lock);
	closeHandle(handle);
}

static void put(const diskRequest *request, csi_buffer *in) {
	csi_put_u64(in, request->file->handle);
	switch (request->kind) {
	case ASK_READ:
		csi_put_u64(in, request->offset);
		csi_put_u32(in, request->outSize);
		break;
	case ASK_WRITE:
		csi_put_u64(in, request->offset);
		csi_put_bytes(in, request->buffer, request->inSize);
		break;
	case ASK_CONTROL:
		csi_put_u32(in, request->code);
		csi_put_bytes(in, request->buffer, request->inSize);
		csi_put_u32(in, request->outSize);
		break;
	}
}

static void forward(diskRequest *request) {
	static const WORD operations[] = {
		[ASK_READ] = CSI_READ_AT,
		[ASK_WRITE] = CSI_WRITE_AT,
		[ASK_FLUSH] = CSI_FLUSH,
		[ASK_CONTROL] = CSI_DEVICE_IO_CONTROL,
	};
	request->error = openFile(request->file, GENERIC_READ | GENERIC_WRITE, request->file->share);
	if (request->error) return;
	csi_buffer in = {0};
	csi_answer out;
	put(request, &in);
	request->error = call(operations[request->kind], &in, &out);
	if (request->kind == ASK_WRITE && !request->error) request->count = request->inSize;
	if ((request->kind == ASK_READ || request->kind == ASK_CONTROL) && out.memory && out.body.size > out.body.at) {
		const BYTE *data = csi_get_bytes(&out.body, &request->count);
		if (request->count > request->outSize) request->count = request->outSize;
		for (ULONG i = 0; i < request->count; i++) request->buffer[i] = data[i];
		if (out.body.failed) request->error = ERROR_INVALID_DATA;
	}
	csi_answer_free(&out);
}

// openAs is DISK_OPEN.
static void openAs(diskRequest *request) {
	ULONG *words = (ULONG *)request->buffer;
	if (request->inSize < 2 * sizeof *words || request->outSize < sizeof *words) {
		request->error = ERROR_INVALID_PARAMETER;
		return;
	}
	words[0] = openFile(request->file, words[0], words[1]);
	request->count = sizeof *words;
}

static void answer(diskRequest *request) {
	ULONG code = request->kind == ASK_CONTROL ? request->code : 0;
	switch (code) {
	case DISK_OPEN:
		openAs(request);
		break;
	case DISK_CLOSE:
		closeFile(request->file);
		break;
	default:
		forward(request);
	}
}

// --- files

diskFile *diskOpened(const WCHAR *name, ULONG share) {
	diskFile *file = csi_alloc(sizeof *file);
	if (!file) return NULL;
	// The node takes a volume by this path only, a disk by this one as well.
	lstrcpyW(file->path, L"\\\\?\\");
	lstrcpynW(file->path + 4, name, NAME_UNITS);
	file->share = share;
	file->holders = 1;
	return file;
}

static void letGo(diskFile *file) {
	if (InterlockedDecrement(&file->holders) > 0) return;
	closeHandle(file->handle);
	csi_free(file);
}

// --- threads

diskRequest *diskNewRequest(diskFile *file, int kind) {
	diskRequest *request = csi_alloc(sizeof *request);
	if (!request) return NULL;
	request->kind = kind;
	request->file = file;
	if (kind != ASK_CLOSE) InterlockedIncrement(&file->holders);
	return request;
}

void diskFreeRequest(diskRequest *request) {
	letGo(request->file);
	csi_free(request);
}

static void serve(diskRequest *request) {
	if (request->kind != ASK_CLOSE) {
		answer(request);
		diskAnswered(request);
	}
	diskFreeRequest(request);
}

// take waits for a request; it returns NULL when the thread shall end.
static diskRequest *take(void) {
	AcquireSRWLockExclusive(&lock);
	BOOL more = TRUE;
	while (!queue && !stopping && more) {
		idle++;
		more = SleepConditionVariableSRW(&asked, &lock, IDLE_MILLISECONDS, 0);
		idle--;
	}
	diskRequest *request = queue;
	if (request) {
		queue = request->next;
		if (!queue) queueEnd = &queue;
		waiting--;
	}
	ReleaseSRWLockExclusive(&lock);
	return request;
}

// end ends the thread, and its hold of the driver's image.
static void end(HMODULE self) {
	AcquireSRWLockExclusive(&lock);
	threads--;
	ReleaseSRWLockExclusive(&lock);
	WakeAllConditionVariable(&ending);
	FreeLibraryAndExitThread(self, 0);
}

static DWORD WINAPI work(void *self) {
	for (diskRequest *request; (request = take());) serve(request);
	end(self);
	return 0;
}

// startLocked starts a thread that holds the driver's image, so that one which hangs in
// a call of the node outlives the unloading of the driver.
static BOOL startLocked(LPTHREAD_START_ROUTINE run) {
	HMODULE self;
	if (!GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS, (const WCHAR *)run, &self)) return FALSE;
	HANDLE thread = CreateThread(NULL, 0, run, self, 0, NULL);
	if (!thread) {
		FreeLibrary(self);
		return FALSE;
	}
	CloseHandle(thread);
	threads++;
	return TRUE;
}

void diskAsk(diskRequest *request) {
	AcquireSRWLockExclusive(&lock);
	*queueEnd = request;
	queueEnd = &request->next;
	waiting++;
	// Without a new thread the request waits for one that is at work.
	if (waiting > idle) startLocked(work);
	ReleaseSRWLockExclusive(&lock);
	WakeConditionVariable(&asked);
}

// --- the list of devices

// stopped waits for the time, or until the driver is unloaded; it reports the latter.
static BOOL stopped(DWORD milliseconds) {
	AcquireSRWLockExclusive(&lock);
	if (!stopping && milliseconds) SleepConditionVariableSRW(&ending, &lock, milliseconds, 0);
	BOOL now = stopping;
	ReleaseSRWLockExclusive(&lock);
	return now;
}

static void apply(csi_reader *list) {
	DWORD count = csi_get_count(list, 4);
	WCHAR **names = csi_alloc((count + 1) * sizeof *names);
	if (!names) return;
	for (DWORD i = 0; i < count; i++) {
		if (!(names[i] = csi_get_text(list, NULL))) count = i;
	}
	// What went away goes first: another device may have taken its name.
	if (!list->failed) {
		deviceKeepOnly((const WCHAR *const *)names, count, GetTickCount64());
		for (DWORD i = 0; i < count; i++) deviceAdd(names[i]);
	}
	for (DWORD i = 0; i < count; i++) csi_free(names[i]);
	csi_free(names);
}

static void ready(DWORD generation) {
	csi_buffer in = {0};
	csi_answer out;
	csi_put_u32(&in, generation);
	call(CSI_DEVICES_READY, &in, &out);
	csi_answer_free(&out);
}

// follow asks for the list once and makes Wine's devices equal to it. It returns
// FALSE when there was no answer; the devices stay as they are, and fail.
static BOOL follow(DWORD *generation) {
	csi_buffer in = {0};
	csi_answer out;
	csi_put_u32(&in, *generation);
	csi_put_u32(&in, POLL_MILLISECONDS);
	BOOL ok = call(CSI_DEVICES, &in, &out) == 0;
	DWORD newest = ok ? csi_get_u32(&out.body) : 0;
	if (ok && newest != *generation) {
		apply(&out.body);
		ready(newest);
	}
	csi_answer_free(&out);
	deviceDelete(GetTickCount64());
	*generation = newest; // 0 asks a server that came back for everything
	return ok;
}

static DWORD WINAPI poll(void *self) {
	DWORD generation = 0;
	while (!stopped(0)) {
		if (!follow(&generation)) stopped(RETRY_MILLISECONDS);
	}
	end(self);
	return 0;
}

BOOLEAN diskStart(void) {
	AcquireSRWLockExclusive(&lock);
	stopping = FALSE; // the image may have stayed in memory, with a thread that still hangs
	BOOL ok = startLocked(poll);
	ReleaseSRWLockExclusive(&lock);
	return ok;
}

void diskStop(void) {
	ULONGLONG last = GetTickCount64() + STOP_MILLISECONDS;
	AcquireSRWLockExclusive(&lock);
	stopping = TRUE;
	WakeAllConditionVariable(&asked);
	WakeAllConditionVariable(&ending);
	for (ULONGLONG now; threads > 0 && (now = GetTickCount64()) < last;) {
		SleepConditionVariableSRW(&ending, &lock, (DWORD)(last - now), 0);
	}
	ReleaseSRWLockExclusive(&lock);
	csi_disconnect();
}
