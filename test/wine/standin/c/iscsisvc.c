// csiiscsi.exe: a service with the name and display name of the Microsoft iSCSI
// Initiator Service, which tells the simulated node when it starts and stops. The node
// answers its iSCSI classes accordingly, so that starting the service through the
// service manager has the effect that it has on Windows.
//
// `csiiscsi.exe -report` tells a node that has just come up which state the service is in.
// `csiiscsi.exe NAME …` is a service of another name, for tests that need some; a node
// that has no such service does not mind. Without an active lab nobody hears of anything.
#include "link.h"

#define WAIT_HINT_MILLISECONDS 10000

static const WCHAR *name = L"MSiSCSI";
static SERVICE_STATUS_HANDLE status;
static HANDLE stop;

static BOOL tell(WORD operation) {
	csi_buffer in = {0};
	csi_answer out;
	csi_put_text(&in, name, -1);
	BOOL ok = csi_call(operation, &in, &out) && out.status == 0;
	csi_answer_free(&out);
	return ok;
}

static void setState(DWORD state) {
	SERVICE_STATUS now = {.dwServiceType = SERVICE_WIN32_OWN_PROCESS, .dwCurrentState = state};
	if (state == SERVICE_RUNNING) {
		now.dwControlsAccepted = SERVICE_ACCEPT_STOP;
	} else if (state != SERVICE_STOPPED) {
		now.dwWaitHint = WAIT_HINT_MILLISECONDS;
	}
	SetServiceStatus(status, &now);
}

static DWORD WINAPI control(DWORD code, DWORD type, void *data, void *context) {
	(void)type, (void)data, (void)context;
	switch (code) {
	case SERVICE_CONTROL_STOP:
		setState(SERVICE_STOP_PENDING);
		SetEvent(stop);
		return NO_ERROR;
	case SERVICE_CONTROL_INTERROGATE:
		return NO_ERROR;
	}
	return ERROR_CALL_NOT_IMPLEMENTED;
}

// The node hears of each change before the service manager's clients do: whoever sees
// the service running finds the classes there.
static void WINAPI serve(DWORD count, WCHAR **arguments) {
	(void)count, (void)arguments;
	stop = CreateEventW(NULL, TRUE, FALSE, NULL);
	status = RegisterServiceCtrlHandlerExW(name, control, NULL);
	if (!status) return;
	setState(SERVICE_START_PENDING);
	tell(CSI_SERVICE_STARTED);
	setState(SERVICE_RUNNING);
	WaitForSingleObject(stop, INFINITE);
	tell(CSI_SERVICE_STOPPED);
	setState(SERVICE_STOPPED);
}

// report tells the node the state that the service manager has.
static int report(void) {
	SERVICE_STATUS now = {0};
	SC_HANDLE manager = OpenSCManagerW(NULL, NULL, SC_MANAGER_CONNECT);
	SC_HANDLE service = manager ? OpenServiceW(manager, name, SERVICE_QUERY_STATUS) : NULL;
	BOOL known = service && QueryServiceStatus(service, &now);
	if (service) CloseServiceHandle(service);
	if (manager) CloseServiceHandle(manager);
	if (!known) return 1;
	return tell(now.dwCurrentState == SERVICE_RUNNING ? CSI_SERVICE_STARTED : CSI_SERVICE_STOPPED) ? 0 : 2;
}

int wmain(int count, WCHAR **arguments) {
	if (count == 2 && lstrcmpW(arguments[1], L"-report") == 0) return report();
	if (count > 1) name = arguments[1];
	SERVICE_TABLE_ENTRYW table[] = {{(WCHAR *)name, serve}, {NULL, NULL}};
	return StartServiceCtrlDispatcherW(table) ? 0 : 1;
}
