// The error object of a failed call: IErrorInfo, which also is the IWbemClassObject
// of the provider's error class; see wbem.h.
#include "wbem.h"

typedef struct {
	IErrorInfo iface;
	LONG refs;
	DWORD thread;
	IWbemClassObject *details;
} errorInfo;

static HRESULT WINAPI errorQuery(IErrorInfo *self, REFIID iid, void **out) {
	*out = NULL;
	if (IsEqualIID(iid, &IID_IWbemClassObject)) return IWbemClassObject_QueryInterface(((errorInfo *)self)->details, iid, out);
	if (!IsEqualIID(iid, &IID_IUnknown) && !IsEqualIID(iid, &IID_IErrorInfo)) return E_NOINTERFACE;
	IErrorInfo_AddRef(self);
	*out = self;
	return S_OK;
}

static ULONG WINAPI errorAddRef(IErrorInfo *self) { return InterlockedIncrement(&((errorInfo *)self)->refs); }

static ULONG WINAPI errorRelease(IErrorInfo *self) {
	errorInfo *e = (errorInfo *)self;
	ULONG refs = InterlockedDecrement(&e->refs);
	if (refs == 0) {
		IWbemClassObject_Release(e->details);
		DWORD thread = e->thread;
		csi_free(e);
		objectGone(thread);
	}
	return refs;
}

static IErrorInfoVtbl errorTable = {
	errorQuery, errorAddRef, errorRelease,
	.GetGUID = (void *)unsupported, .GetSource = (void *)unsupported, .GetDescription = (void *)unsupported,
	.GetHelpFile = (void *)unsupported, .GetHelpContext = (void *)unsupported,
};

static BOOL setText(property *p, const WCHAR *name, const WCHAR *text) {
	p->name = copyText(name);
	p->type = CIM_STRING;
	V_BSTR(&p->value) = SysAllocString(text);
	V_VT(&p->value) = V_BSTR(&p->value) ? VT_BSTR : VT_NULL;
	return p->name && V_BSTR(&p->value);
}

static BOOL setNumber(property *p, const WCHAR *name, DWORD number) {
	p->name = copyText(name);
	p->type = CIM_UINT32;
	V_VT(&p->value) = VT_I4;
	V_I4(&p->value) = (LONG)number;
	return p->name != NULL;
}

// errorObject is MSFT_WmiError when the provider gave the number of a Windows error,
// else WMI's own __ExtendedStatus.
static IWbemClassObject *errorObject(DWORD win32, const WCHAR *message, HRESULT status, const WCHAR *operation) {
	properties all = {csi_alloc(3 * sizeof(property)), 3};
	if (!all.items) return NULL;
	property *p = all.items;
	BOOL ok;
	if (win32) {
		ok = setNumber(&p[0], L"error_Code", win32) && setText(&p[1], L"error_WindowsErrorMessage", message) &&
			 setNumber(&p[2], L"CIMStatusCode", 1);
	} else {
		ok = setNumber(&p[0], L"StatusCode", (DWORD)status) && setText(&p[1], L"Description", message) &&
			 setText(&p[2], L"Operation", operation);
	}
	if (ok) return newObject(win32 ? L"MSFT_WmiError" : L"__ExtendedStatus", NULL, NULL, 2, &all);
	freeProperties(&all);
	return NULL;
}

static void hand(IWbemClassObject *details) {
	SetErrorInfo(0, NULL);
	if (!details) return;
	errorInfo *e = csi_alloc(sizeof *e);
	if (!e) {
		IWbemClassObject_Release(details);
		return;
	}
	e->iface.lpVtbl = &errorTable;
	e->refs = 1;
	e->details = details;
	e->thread = objectMade();
	SetErrorInfo(0, &e->iface);
	IErrorInfo_Release(&e->iface);
}

HRESULT failedAnswer(csi_answer *answer, const WCHAR *operation) {
	HRESULT status = (HRESULT)answer->status;
	DWORD win32 = csi_get_u32(&answer->body);
	WCHAR *message = csi_get_text(&answer->body, NULL);
	BOOL said = win32 || (message && *message);
	hand(said ? errorObject(win32, message ? message : L"", status, operation) : NULL);
	csi_free(message);
	return status;
}

HRESULT lost(const csi_answer *answer) {
	hand(NULL);
	return answer->status == CSI_LOST ? RPC_DISCONNECTED : RPC_UNAVAILABLE;
}

HRESULT damaged(void) {
	hand(errorObject(0, L"the answer cannot be read", WBEM_E_PROVIDER_FAILURE, L"provider"));
	return WBEM_E_PROVIDER_FAILURE;
}
