/* SPDX-License-Identifier: GPL-2.0-only */
/* Inside a hosted kernel: DMA engines that dcbm may find, and how offload.c controls them. */
#ifndef REAM_DMA_MODEL_H
#define REAM_DMA_MODEL_H

#include <linux/types.h>
#include "offload.h"

struct device;
struct dma_device;

/*
 * dma_engine.c: choose the engine that dcbm finds. For the engine of threads, also
 * limit the bytes per descriptor, and choose whether it claims to report errors.
 */
void dma_engine_choose(const struct offload_request *request);
void dma_engine_limit(unsigned int bytes);
void dma_engine_report(bool reports_errors);

/* Number of pages that are mapped for the engine. It is counted only if reads() is set. */
long dma_engine_nr_mapped(void);

/* dma_model.c: set up the model of an engine as device @dev, and return it. */
struct dma_device *dma_model(struct device *dev, const struct offload_request *request);

/* Choose whether copies are deferred, or done as soon as they are completed. */
void dma_model_defers(bool defers);

/* Do all copies that the model has completed. */
void dma_model_settle(void);

/* Whether a copy from or to this frame is deferred. */
bool dma_model_has(unsigned long pfn);

/* Init functions of the modules. They are static there; see an experiment's `objects`. */
int dcbm_init(void);
int swdma_init(void);
int mtcopy_init(void);

#endif
