// csiwbem.dll: stand-in for WMI in the Wine prefix. It is the COM class
// CLSID_WbemLocator and answers from the node server over the stand-in link. The
// shapes of values, errors and enumerations are those that the WMI SDK documents.
//
// While the lab is not active, and for what the node does not know, Wine's own
// provider answers.
#ifndef CSI_WBEM_H
#define CSI_WBEM_H

#define COBJMACROS
#include "link.h"
#include <oleauto.h>
#include <wbemcli.h>

// RPC failures of a service that went away. Source: winerror.h.
#define RPC_DISCONNECTED ((HRESULT)0x80010108)
#define RPC_UNAVAILABLE ((HRESULT)0x800706BA)

// Every COM object of this library counts itself, the class object excepted.
// objectMade returns the thread it was made on, which objectGone is told.
DWORD objectMade(void);
void objectGone(DWORD madeOn);

// --- wbem_value.c: CIM values on the link, VARIANTs in COM

// property is a property or a parameter. Names that begin with __ are those of the system.
typedef struct {
	WCHAR *name;
	CIMTYPE type;
	BOOL put; // set through Put
	VARIANT value;
} property;

typedef struct {
	property *items;
	DWORD count;
} properties;

// readProperties reads a list of names and CIM values, readDeclarations one of
// names and types. FALSE leaves nothing to free.
BOOL readProperties(csi_reader *r, properties *all);
BOOL readDeclarations(csi_reader *r, properties *all);
// copyProperties copies, without the values: they are NULL.
BOOL copyProperties(const properties *from, properties *to);
void freeProperties(properties *all);
property *findProperty(const properties *all, const WCHAR *name);
// checkValue says whether Put takes a VARIANT for a CIM type.
HRESULT checkValue(CIMTYPE type, const VARIANT *value);
// writePut writes the properties that were put, as the in-parameters of a call.
void writePut(csi_buffer *b, const properties *all);
WCHAR *copyText(const WCHAR *text);

// --- wbem_object.c: IWbemClassObject

typedef struct {
	WCHAR *name;
	BOOL hasIn;
	properties in;
} method;

// classDefinition is what only a class has.
typedef struct {
	method *methods;
	DWORD count;
} classDefinition;

// The makers return NULL without memory, or when the answer is damaged.
IWbemClassObject *readInstance(csi_reader *r, const WCHAR *space);
IWbemClassObject *readClass(csi_reader *r, const WCHAR *space);
// newObject takes over the properties; genus is 1 for a class, 2 for an instance.
IWbemClassObject *newObject(const WCHAR *class, const WCHAR *path, const WCHAR *space, int genus, properties *take);
// parametersOf returns the properties of an object of this library, NULL for a foreign one.
const properties *parametersOf(IWbemClassObject *object);

// --- wbem_method.c: the methods of a class

BOOL readMethods(csi_reader *r, classDefinition *definition);
void freeMethods(classDefinition *definition);
HRESULT methodSignatures(const classDefinition *definition, const WCHAR *name, IWbemClassObject **in, IWbemClassObject **out);

// --- wbem_error.c: what GetErrorInfo returns

// failed reads the error information of an answer, hands it to the thread, and
// returns the status.
HRESULT failedAnswer(csi_answer *answer, const WCHAR *operation);
// lost is the failure of a call that got no answer.
HRESULT lost(const csi_answer *answer);
// damaged is the failure of a call whose answer cannot be read.
HRESULT damaged(void);

// --- wbem_enum.c: IEnumWbemClassObject

// newEnumerator takes over the pending call.
IEnumWbemClassObject *newEnumerator(csi_pending *take, const WCHAR *space);
// settle waits for the answer and returns the query's failure, if it has one.
HRESULT settle(IEnumWbemClassObject *enumerator);

// --- wbem_services.c: IWbemServices

// newServices makes the connection of a namespace. wine, which may be NULL and is
// taken over, is Wine's connection of the same namespace.
IWbemServices *newServices(const WCHAR *space, IWbemServices *wine);

// unsupported stands for the functions of an interface that are not there. It may
// take any arguments: the caller of a function clears the stack on x86-64.
HRESULT WINAPI unsupported(void *self);

#endif
