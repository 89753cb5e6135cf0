// Browsers start no worker for a page of a file, and the search of the site runs in one. There an iframe does its work.
if (location.protocol === "file:") {
  const load = (target, url) => new Promise((resolve, reject) => {
    const script = target.document.createElement("script")
    script.src = url
    script.onload = resolve
    script.onerror = () => reject(new Error(`cannot load ${url}`))
    target.document.head.append(script)
  })
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      this.waiting = [] // messages that came before the frame could take them
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      this.frame.srcdoc = "<!doctype html>"
      this.frame.onload = async () => {
        const target = this.frame.contentWindow
        target.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }))
        target.importScripts = async (...urls) => { for (const one of urls) await load(target, one) }
        await load(target, url)
        this.target = target
        this.waiting.splice(0).forEach(data => this.postMessage(data))
      }
      document.body.append(this.frame)
    }
    postMessage(data) {
      if (this.target) this.target.dispatchEvent(new MessageEvent("message", { data }))
      else this.waiting.push(data)
    }
    terminate() { this.frame.remove() }
  }
}
