// SPDX-License-Identifier: GPL-2.0-only
/*
 * The parts of dmaengine, DMA mapping and platform devices that a DMA engine in
 * software and its client need. An experiment uses it if its file `objects` lists
 * ream/dma_engine.o. All of it is custom, for two devices: swdma and a model.
 * Every request for a channel gets the first free one.
 */
#ifdef CONFIG_DMA_ENGINE

#include <linux/atomic.h>
#include <linux/dma-mapping.h>
#include <linux/dmaengine.h>
#include <linux/err.h>
#include <linux/mm.h>
#include <linux/platform_device.h>
#include "kernel.h"
#include "dma_model.h"

static struct platform_device *platform_device;
/* swdma, and the device whose channels clients get: swdma or the model. */
static struct dma_device *software, *engine;
static void (*reads)(struct page *page);
/* Counted only if reads is set. Nothing is timed then. */
static atomic_long_t nr_mapped;

/* --- The engine's side --------------------------------------------------- */

struct platform_device *
platform_device_register_full(const struct platform_device_info *info)
{
	HOST_STUB("custom");
	platform_device = host_alloc(sizeof(*platform_device));
	platform_device->name = info->name;
	platform_device->dev.init_name = info->name;
	platform_device->dev.dma_parms = &platform_device->dma_parms;
	return platform_device;
}

/* There is one platform device, so probe it by this driver. */
#ifdef HAVE_PLATFORM_DRIVER_MOD_NAME
int __platform_driver_register(struct platform_driver *driver,
			       struct module *owner, const char *mod_name)
#else
int __platform_driver_register(struct platform_driver *driver,
			       struct module *owner)
#endif
{
	HOST_STUB("custom");
	return driver->probe(platform_device);
}

int dma_async_device_register(struct dma_device *device)
{
	struct dma_chan *chan;

	HOST_STUB("custom");
	engine = device;
	if (!software)
		software = device;
	list_for_each_entry(chan, &device->channels, device_node) {
		chan->chan_id = device->chancnt++;
		chan->dev = host_alloc(sizeof(*chan->dev));
		chan->dev->chan = chan;
		chan->dev->device.init_name = "dma0chan";
	}
	return 0;
}

void dma_async_tx_descriptor_init(struct dma_async_tx_descriptor *tx,
				  struct dma_chan *chan)
{
	HOST_STUB("custom");
	tx->chan = chan;
}

/* --- The client's side --------------------------------------------------- */

/* No mutex is needed: only one thread requests channels, between migrations. */
static struct dma_chan *request_channel(dma_filter_fn suits, void *param)
{
	struct dma_chan *chan;

	list_for_each_entry(chan, &engine->channels, device_node) {
		if (chan->client_count || (suits && !suits(chan, param)))
			continue;
		if (engine->device_alloc_chan_resources(chan) < 0)
			return NULL;
		chan->client_count = 1;
		return chan;
	}
	return NULL;
}

struct dma_chan *dma_request_chan_by_mask(const dma_cap_mask_t *mask)
{
	HOST_STUB("custom");
	if (!engine)
		return ERR_PTR(-EPROBE_DEFER);
	return request_channel(NULL, NULL) ?: ERR_PTR(-ENODEV);
}

struct dma_chan *__dma_request_channel(const dma_cap_mask_t *mask,
				       dma_filter_fn suits, void *param,
				       struct device_node *node)
{
	HOST_STUB("custom");
	return engine ? request_channel(suits, param) : NULL;
}

void dma_release_channel(struct dma_chan *chan)
{
	HOST_STUB("custom");
	chan->device->device_synchronize(chan);
	chan->device->device_free_chan_resources(chan);
	chan->client_count = 0;
}

void dma_engine_choose(const struct offload_request *request)
{
	reads = request->reads;
	atomic_long_set(&nr_mapped, 0);
	engine = request->mb_per_s ? dma_model(&platform_device->dev, request) : software;
}

void dma_engine_report(bool reports_errors)
{
#ifdef HAVE_DMA_REPORTS_ERRORS
	software->reports_errors = reports_errors;
#endif
}

void dma_engine_limit(unsigned int bytes)
{
	dma_set_max_seg_size(&platform_device->dev, bytes);
}

long dma_engine_nr_mapped(void)
{
	return atomic_long_read(&nr_mapped);
}

/* --- Addresses ----------------------------------------------------------- */

/* There is no IOMMU and caches are coherent, so a DMA address is a physical one. */
dma_addr_t dma_map_page_attrs(struct device *dev, struct page *page,
			      size_t offset, size_t size,
			      enum dma_data_direction direction,
			      unsigned long attrs)
{
	HOST_STUB("custom");
	if (reads)
		atomic_long_inc(&nr_mapped);
	if (direction == DMA_TO_DEVICE && reads)
		reads(page);
	return page_to_phys(page) + offset;
}

void dma_unmap_page_attrs(struct device *dev, dma_addr_t address, size_t size,
			  enum dma_data_direction direction,
			  unsigned long attrs)
{
	HOST_STUB("custom");
	if (reads)
		atomic_long_dec(&nr_mapped);
}

int dma_set_mask(struct device *dev, u64 mask)
{
	HOST_STUB("custom");
	return 0;
}

int dma_set_coherent_mask(struct device *dev, u64 mask)
{
	HOST_STUB("custom");
	return 0;
}

/* The device is never freed. */
struct device *get_device(struct device *dev)
{
	HOST_STUB("custom");
	return dev;
}

void put_device(struct device *dev)
{
	HOST_STUB("custom");
}

#endif /* CONFIG_DMA_ENGINE */
