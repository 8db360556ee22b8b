// A file that the model made: pictures and sounds are shown, anything else is a link.
// Nothing here can act: no markup, no script, no type that a browser would run, no other scheme.
const PICTURES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp", "image/avif"]);
const WEB = /^https?:\/\//i;
const BASE64 = /^data:([a-z0-9.+/-]+);base64,[A-Za-z0-9+/=]*$/i;

export function File({ url, mediaType }) {
  const type = mediaType.split(";")[0].toLowerCase();
  const inside = BASE64.exec(url)?.[1].toLowerCase(); // what the address itself says that it is
  const safe = WEB.test(url) || inside === type;
  if (safe && PICTURES.has(type)) return <img src={url} alt={`A picture (${type})`} referrerPolicy="no-referrer" />;
  if (safe && type.startsWith("audio/")) return <audio src={url} controls />;
  if (WEB.test(url)) return <p><a href={url} target="_blank" rel="noopener noreferrer nofollow">{url}</a></p>;
  if (inside) return <p><a href={url.replace(/^data:[^;]*/i, "data:application/octet-stream")} download="file">A file ({type})</a></p>;
  return <p>A file ({type})</p>;
}
