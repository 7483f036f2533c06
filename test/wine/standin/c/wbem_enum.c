// IEnumWbemClassObject: the rows of a query, read from the answer one by one.
// The answer may still be on its way; see wbem.h.
#include "wbem.h"

typedef struct {
	IEnumWbemClassObject iface;
	LONG refs;
	DWORD thread;
	WCHAR *space;
	BOOL waiting; // the answer is not here yet
	csi_pending pending;
	HRESULT failure; // of the whole query
	csi_answer answer;
	DWORD left; // rows
} enumerator;

static HRESULT WINAPI enumQuery(IEnumWbemClassObject *self, REFIID iid, void **out) {
	*out = NULL;
	if (!IsEqualIID(iid, &IID_IUnknown) && !IsEqualIID(iid, &IID_IEnumWbemClassObject)) return E_NOINTERFACE;
	IEnumWbemClassObject_AddRef(self);
	*out = self;
	return S_OK;
}

static ULONG WINAPI enumAddRef(IEnumWbemClassObject *self) { return InterlockedIncrement(&((enumerator *)self)->refs); }

static ULONG WINAPI enumRelease(IEnumWbemClassObject *self) {
	enumerator *e = (enumerator *)self;
	ULONG refs = InterlockedDecrement(&e->refs);
	if (refs == 0) {
		if (e->waiting) csi_abandon(&e->pending);
		csi_answer_free(&e->answer);
		csi_free(e->space);
		DWORD thread = e->thread;
		csi_free(e);
		objectGone(thread);
	}
	return refs;
}

// receive takes the answer, and waits for it if it is not there.
static void receive(enumerator *e) {
	e->waiting = FALSE;
	if (!csi_finish(&e->pending, &e->answer)) {
		e->failure = lost(&e->answer);
	} else if (e->answer.status != S_OK) {
		e->failure = failedAnswer(&e->answer, L"ExecQuery");
	} else {
		e->left = csi_get_count(&e->answer.body, 12);
		if (e->answer.body.failed) e->failure = damaged();
	}
}

HRESULT settle(IEnumWbemClassObject *self) {
	enumerator *e = (enumerator *)self;
	if (e->waiting) receive(e);
	return e->failure;
}

// enumNext returns WBEM_S_FALSE with the last rows when they are fewer than asked
// for, and WBEM_S_TIMEDOUT when none has come in time.
static HRESULT WINAPI enumNext(IEnumWbemClassObject *self, LONG timeout, ULONG count, IWbemClassObject **rows, ULONG *returned) {
	enumerator *e = (enumerator *)self;
	if (!rows || !returned || count == 0) return WBEM_E_INVALID_PARAMETER;
	*returned = 0;
	if (e->waiting) {
		if (!csi_wait(&e->pending, timeout < 0 ? INFINITE : (DWORD)timeout)) return WBEM_S_TIMEDOUT;
		receive(e);
	}
	if (FAILED(e->failure)) return e->failure;
	for (; *returned < count && e->left > 0; e->left--) {
		IWbemClassObject *row = readInstance(&e->answer.body, e->space);
		if (!row) {
			e->failure = damaged();
			return e->failure;
		}
		rows[(*returned)++] = row;
	}
	return *returned == count ? WBEM_S_NO_ERROR : WBEM_S_FALSE;
}

static HRESULT WINAPI enumSkip(IEnumWbemClassObject *self, LONG timeout, ULONG count) {
	for (; count > 0; count--) {
		IWbemClassObject *row;
		ULONG returned;
		HRESULT hr = enumNext(self, timeout, 1, &row, &returned);
		if (hr != WBEM_S_NO_ERROR) return hr;
		IWbemClassObject_Release(row);
	}
	return WBEM_S_NO_ERROR;
}

static HRESULT WINAPI enumReset(IEnumWbemClassObject *self) {
	(void)self;
	return WBEM_E_INVALID_OPERATION; // every enumerator goes forward only
}

static IEnumWbemClassObjectVtbl enumTable = {
	enumQuery, enumAddRef, enumRelease,
	.Reset = enumReset, .Next = enumNext, .NextAsync = (void *)unsupported, .Clone = (void *)unsupported, .Skip = enumSkip,
};

IEnumWbemClassObject *newEnumerator(csi_pending *take, const WCHAR *space) {
	enumerator *e = csi_alloc(sizeof *e);
	WCHAR *copied = copyText(space);
	if (!e || !copied) {
		csi_abandon(take);
		csi_free(e);
		csi_free(copied);
		return NULL;
	}
	e->iface.lpVtbl = &enumTable;
	e->refs = 1;
	e->space = copied;
	e->waiting = TRUE;
	e->pending = *take;
	e->thread = objectMade();
	return &e->iface;
}
